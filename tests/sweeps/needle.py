"""Texts of which the end, or more, is not seen."""

CLEAN = {"context": 16384}
FAULTS = {
    "what is deeper than this part of the prompt is not found": [
        (f"{d:g}", {"forget": d}) for d in (0.99, 0.9, 0.8, 0.5, 0.1)
    ],
}
