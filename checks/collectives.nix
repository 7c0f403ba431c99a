# Proves: inside the engine's root, three ranks with the plugin get the same bits on every rank, equal to a sum in rank
# order, for random shapes and types; a rank that is lost, stopped, out of step or set otherwise ends all, by name.
# Costs: 30 s once the closure is built.
{ runPython, hosts, sparkserve, source }:
runPython {
  name = "check-collectives";
  interpreter = "${sparkserve}/bin";
  script = source ./collectives.py;
  closure = hosts.local-single.spark-0;
  tests = source ../tests/engine;
}
