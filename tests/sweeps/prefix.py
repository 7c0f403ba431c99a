"""Hits that change what comes."""

CLEAN: dict[str, object] = {}
FAULTS = {
    "with a hit each logit moves by d nats": [
        (f"{d:g}", {"drift": d, "drift_when": "hit"}) for d in (0.02, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3)
    ],
    "share s of the hits answers another prompt": [
        (f"{s:g}", {"wrong_hit": True, "share": s}) for s in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    ],
    "the cache finds nothing": [("always", {"page": 1 << 20})],
}
