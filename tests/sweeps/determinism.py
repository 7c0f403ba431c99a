"""Logits that move, anew each time a prompt comes."""

CLEAN: dict[str, object] = {}
FAULTS = {
    "each logit moves by d nats": [
        (f"{d:g}", {"drift": d, "drift_when": "repeat"}) for d in (1e-9, 1e-6, 1e-3, 0.1)
    ],
    "share s of the answers moves by 0.01 nats": [
        (f"{s:g}", {"drift": 0.01, "drift_when": "repeat", "share": s})
        for s in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
    ],
    "k of 1,000 tokens are garbled": [(f"{k}", {"garble": (k, 1000)}) for k in (2, 5, 10, 20, 40, 80)],
}
