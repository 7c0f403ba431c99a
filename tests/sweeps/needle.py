"""Texts of which the end, or more, is not seen."""

CLEAN = {"context": 16384}
FAULTS = {
    "what is deeper than this part of the prompt is not found": [
        (f"{d:g}", {"context": 16384, "forget": d}) for d in (0.99, 0.9, 0.8, 0.5, 0.1)
    ],
    "share s of the answers is without the last half": [
        (f"{s:g}", {"context": 16384, "forget": 0.5, "share": s}) for s in (0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
    ],
}
