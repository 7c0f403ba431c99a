"""Counters: the engine's read, ours written, both in Prometheus' text form."""
