"""Code with wrong tokens in it."""

from scripted.skills import LRU

CLEAN = {"answers": {"LRUCache": LRU}}
FAULTS = {
    "k of 1,000 tokens are garbled": [
        (f"{k}", {"garble": (k, 1000)}) for k in (2, 5, 10, 20, 40, 60, 80, 120)
    ],
    "each n-th answer is cut off": [(f"{n}", {"drop_every": n}) for n in (4, 2, 1)],
}
