# Proves: inside the engine's root, three ranks with the plugin get the same bits on every rank, equal to a sum in rank
# order, for random shapes and types; a rank that is lost, stopped, out of step or set otherwise ends all, by name. And
# SGLang's parsers of tool calls give the same calls from a text split anywhere. Costs: 50 s once the closure is built.
{ engineCheck, source }:
engineCheck { name = "collectives"; script = source ./collectives.py; tests = source ../tests/engine; }
