# Joins a node's plan with the engine root and the harness into one store path. The plan names packages, never paths:
# a plan with build outputs in it could not be evaluated without building.
{ runPython, source, layer, packages, tools, sparkserve }:
{ fleet, node, plans }:
let
  plan = plans.${node};
  named = packages.${plan.engine.package};
  engine =
    if named ? layers then named else
    (import ./throw.nix).fail "FLEET.OPTION" {
      expected = "a package that is an engine";
      found = plan.engine.package;
      where = "engine.package of the fleet ${fleet}";
      way = "Use engine-cpu.";
    };
  layers = engine.layers ++ [ (layer { name = "model"; target = "/model"; tree = packages.${plan.engine.model}; }) ];
  harness = layer { name = "harness"; target = "/"; tree = sparkserve; };
in
runPython {
  name = "host-${fleet}-${node}";
  script = source ./host.py;
  inherit node sparkserve;
  plans = builtins.toJSON plans;
  closure = builtins.toJSON {
    inherit (engine) argv env;
    bwrap = "${tools}/usr/bin/bwrap";
    layers = map (l: { inherit (l) name target; path = "${l.tree}"; digest = "${l.digest}"; }) layers;
    harness = "${harness.digest}";
  };
} // { inherit layers plan engine; }
