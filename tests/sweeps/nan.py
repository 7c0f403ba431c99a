"""Numbers that are none. The engine takes its time, so that a prefill meets decodes."""

CLEAN = {"step_ms": 3.0}
FAULTS = {
    "share s of the requests has null logprobs": [
        (f"{s:g}", {"nan": "null", "share": s}) for s in (0.02, 0.05, 0.1, 0.15, 0.2)
    ],
    "null logprobs from token n on": [(f"{n}", {"nan": "null", "nan_after": n}) for n in (12, 11, 8, 4)],
    'share s of the requests ends in "!!!!"': [
        (f"{s:g}", {"nan": "bang", "share": s}) for s in (0.02, 0.05, 0.1, 0.15, 0.2)
    ],
    '"!!!!" from token n on': [(f"{n}", {"nan": "bang", "nan_after": n}) for n in (12, 11, 8, 4)],
    "each n-th request fails with 500": [(f"{n}", {"error_every": n}) for n in (64, 32, 16)],
}
