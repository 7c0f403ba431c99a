"""JSON that is not whole."""

CLEAN: dict[str, object] = {}
FAULTS = {
    "share s of the answers lacks its last character": [
        (f"{s:g}", {"break_json": True, "share": s}) for s in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    ],
    "each n-th answer loses an event of its stream": [
        (f"{n}", {"drop": "event", "drop_every": n}) for n in (6, 4, 2, 1)
    ],
    "k of 100 tokens are garbled": [(f"{k}", {"garble": (k, 100)}) for k in (1, 2, 3, 5, 8)],
}
