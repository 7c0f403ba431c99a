# Proves: every target of every adapter resolves in the pinned SGLang and is the source that it was qualified on; and
# with one byte of a target changed, `verify` names it and the boot ends. Costs: 15 s once the closure is built.
{ engineCheck, source }:
engineCheck { name = "adapters"; script = source ./adapters.py; }
