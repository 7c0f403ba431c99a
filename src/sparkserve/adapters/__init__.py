"""Changes to SGLang, each declared, fingerprinted and proven to be in place on every rank.

A folder here is an adapter (`contract.py`). This package runs inside the engine, beside torch and without the
harness's libraries: standard library only, torch where an adapter needs it.
"""
