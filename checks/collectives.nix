# Proves: inside the engine's root, three ranks with the plugin get the same bits on every rank, equal to a sum in rank
# order, for random shapes and types; a rank that is lost, stopped, out of step or set otherwise ends all, by name.
# Costs: 30 s once the closure is built.
{ engineCheck, source }:
engineCheck { name = "collectives"; script = source ./collectives.py; tests = source ../tests/engine; }
