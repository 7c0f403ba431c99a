# What starts a node's engine: its plan, and closure.json with the engine root that the plan names and the harness that reads
# both. Schema: src/sparkserve/engine/closure.py. The plan names packages, never paths: a plan with build outputs in it
# could not be evaluated without building.
{ runPython, source, layer, packages, tools }:
{ fleet, node, plans, harness, guard ? null }:
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
in
runPython {
  name = "closure-${fleet}-${node}";
  script = source ./closure.py;
  inherit node;
  plans = builtins.toJSON plans;
  given = builtins.toJSON {
    inherit guard;
    inherit (engine) argv env;
    bwrap = "${tools}/usr/bin/bwrap";
    layers = map (l: { inherit (l) name target; path = "${l.tree}"; digest = "${l.digest}"; }) layers;
    harness = {
      path = "${harness}";
      digest = "${(layer { name = "harness"; target = "/"; tree = harness; }).digest}";
    };
  };
} // { inherit layers plan engine; }
