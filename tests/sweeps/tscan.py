"""Answers that do not read like text."""

CLEAN: dict[str, object] = {}
FAULTS = {
    "k of 100 tokens are garbled": [(f"{k}", {"garble": (k, 100)}) for k in (1, 2, 3, 4, 6, 8, 12, 16)],
    "share s of the answers has 16 of 100 garbled": [
        (f"{s:g}", {"garble": (16, 100), "share": s}) for s in (0.1, 0.2, 0.3, 0.4, 0.6)
    ],
    "30 characters come n times": [(f"{n}", {"loop": (30, n)}) for n in (3, 4, 5, 6, 8, 12)],
    "share s of the answers loops": [
        (f"{s:g}", {"loop": (30, 40), "share": s}) for s in (0.1, 0.2, 0.3, 0.4, 0.6)
    ],
    "each n-th request fails": [(f"{n}", {"error_every": n}) for n in (16, 8, 4)],
}
