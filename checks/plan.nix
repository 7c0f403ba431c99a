# Proves: every fleet in hosts/ has plans for every node, and plans with a golden copy are equal to it. A fleet of an engine
# and a model that are there has closures; one of what is not built yet has none, and says so.
# Costs: 50 ms.
# A wanted change: ./sparkserve fleet plan FLEET --node NODE > tests/golden/FLEET/NODE.json
{ fleets, hosts, packages, pass }:
let
  inherit (builtins) attrNames concatMap deepSeq filter fromJSON pathExists readFile toJSON tryEval;
  golden = fleet: node: ../tests/golden + "/${fleet}/${node}.json";
  plansOf = fleet:
    let plans = fleets.${fleet}.plans;
    in map (node: { inherit fleet node; plan = plans.${node}; }) (attrNames plans);
  all = concatMap plansOf (attrNames fleets);
  isBuilt = p: packages ? ${p.plan.engine.package} && packages ? ${p.plan.engine.model};
  # What is thrown is only caught where it is wanted: an error in a closure that must be there is shown.
  hasClosure = p:
    let path = hosts.${p.fleet}.${p.node}.drvPath; in if isBuilt p then deepSeq path true else (tryEval path).success;
  promised = filter (p: !isBuilt p && hasClosure p) all;
  changed = filter
    (p: deepSeq [ p.plan (hasClosure p) ] (pathExists (golden p.fleet p.node))
      && toJSON p.plan != toJSON (fromJSON (readFile (golden p.fleet p.node))))
    all;
  names = list: toJSON (map (p: "${p.fleet}/${p.node}") list);
in
if promised != [ ] then
  throw "closures of an engine or a model that is not there: ${names promised}"
else if changed != [ ] then
  throw "plans differ from tests/golden: ${names changed}"
else
  pass "check-plan"
