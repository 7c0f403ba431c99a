"""Logits that are not the reference's."""

CLEAN: dict[str, object] = {"context": 4096}
FAULTS = {
    "each logit moves by d nats": [
        (f"{d:g}", {"drift": d}) for d in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
    ],
    "share s of the answers moves by 1 nat": [
        (f"{s:g}", {"drift": 1.0, "share": s}) for s in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    ],
}
