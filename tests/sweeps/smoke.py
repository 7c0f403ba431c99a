"""An answer of eight tokens."""

CLEAN = {"answers": {"capital of France": "The capital of France is Paris."}}
FAULTS = {
    "k of 100 tokens are garbled": [(f"{k}", {"garble": (k, 100)}) for k in (2, 5, 10, 20, 30, 50)],
    "each n-th answer is cut off": [(f"{n}", {"drop_every": n}) for n in (4, 2, 1)],
    "answers without usage counts": [("all", {"usage": False})],
}
