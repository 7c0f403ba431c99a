"""Logits that move in company."""

# Steps of a millisecond: those who come staggered must meet.
CLEAN: dict[str, object] = {"context": 8192, "step_ms": 1.0}
FAULTS = {
    "logits move by d nats beside others": [
        (f"{d:g}", {"drift": d, "drift_when": "batched"}) for d in (1e-9, 1e-6, 1e-3)
    ],
    "share s of the answers moves by 0.01 nats": [
        (f"{s:g}", {"drift": 0.01, "drift_when": "batched", "share": s}) for s in (0.02, 0.05, 0.1, 0.2, 0.4)
    ],
    "logits move by 1e-6 nats beside n others": [
        (f"{n}", {"drift": 1e-6, "drift_when": "batched", "drift_batch": n}) for n in (8, 7, 4, 1)
    ],
}
