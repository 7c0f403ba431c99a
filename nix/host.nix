# Joins a node's plan with the engine root and the harness into one store path. The plan names packages, never paths:
# a plan with build outputs in it could not be evaluated without building.
{ runPython, source, layer, packages, tools, sparkserve, guard }:
{ fleet, node, plans }:
let
  plan = plans.${node};
  refuse = option: found: expected: (import ./throw.nix).fail "FLEET.OPTION" {
    inherit expected;
    found = "${found}${if packages ? ${found} then "" else ", which is not built yet"}";
    where = "engine.${option} of the fleet ${fleet}";
    way = "Use engine-cpu with demo-model, or only plan: ./sparkserve fleet plan ${fleet}.";
  };
  engine =
    let name = plan.engine.package; named = packages.${name} or { };
    in if named ? layers then named else refuse "package" name "a package that is an engine";
  model = let name = plan.engine.model; in packages.${name} or (refuse "model" name "a package that is a model");
  layers = engine.layers ++ [ (layer { name = "model"; target = "/model"; tree = model; }) ];
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
    guard = if plan.guard == null then null else "${guard}/bin/guard";
    layers = map (l: { inherit (l) name target; path = "${l.tree}"; digest = "${l.digest}"; }) layers;
    harness = "${harness.digest}";
  };
} // { inherit layers plan engine; }
