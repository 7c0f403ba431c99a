"""The gates: a file NAME.py is the gate NAME, with `_` for `-`; one that begins with `_` is none."""
