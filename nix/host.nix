# A host closure: what starts a node's engine, the node's units and files, and the harness, in one store path.
{ runPython, source, closure, sparkserve, guard }:
{ fleet, node, plans }:
let
  program = if plans.${node}.guard == null then null else "${guard}/bin/guard";
  start = closure { inherit fleet node plans; harness = sparkserve; guard = program; };
in
runPython {
  name = "host-${fleet}-${node}";
  script = source ./host.py;
  inherit sparkserve;
  closure = start;
  guard = if program == null then "" else program;
} // { inherit (start) layers plan engine; }
