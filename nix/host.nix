# A host closure: what starts a node's engine, the node's units and files, and the harness, in one store path.
{ runPython, source, closure, sparkserve, guard, pins }:
{ fleet, node, plans }:
let
  program = if plans.${node}.guard == null then null else "${guard}/bin/guard";
  start = closure { inherit fleet node plans; harness = sparkserve; guard = program; };
  # What it is all made of, so that two closures can be compared by names and versions (`sparkserve diff`).
  inherit (start.plan.engine) package model;
  lists = [ "stage0" "base" "tools" "harness" package model ] ++ (if program == null then [ ] else [ "cc" ]);
  pinned = name:
    let list = pins.${name} or { debs = [ ]; wheels = [ ]; };
    in { inherit name; value = map (pin: { inherit (pin) name version sha256; }) (list.debs ++ list.wheels); };
in
runPython {
  name = "host-${fleet}-${node}";
  script = source ./host.py;
  inherit sparkserve;
  closure = start;
  pins = builtins.toJSON (builtins.listToAttrs (map pinned lists));
  guard = if program == null then "" else program;
} // { inherit (start) layers plan engine; }
