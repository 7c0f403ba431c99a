"""The async client of gates and bench: many streams at once, each piece with its time and tokens."""
