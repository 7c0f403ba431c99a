# Proves: every fleet in hosts/ has plans and a closure for every node, and plans with a golden copy are equal to it.
# Costs: 50 ms.
# A wanted change: ./sparkserve fleet plan FLEET --node NODE > tests/golden/FLEET/NODE.json
{ fleets, hosts, pass }:
let
  inherit (builtins) attrNames concatMap deepSeq fromJSON pathExists readFile toJSON;
  golden = fleet: node: ../tests/golden + "/${fleet}/${node}.json";
  plansOf = fleet:
    let plans = fleets.${fleet}.plans;
    in map (node: { inherit fleet node; plan = plans.${node}; }) (attrNames plans);
  changed = builtins.filter
    (p: deepSeq [ p.plan hosts.${p.fleet}.${p.node}.drvPath ] (pathExists (golden p.fleet p.node))
      && toJSON p.plan != toJSON (fromJSON (readFile (golden p.fleet p.node))))
    (concatMap plansOf (attrNames fleets));
in
if changed == [ ] then
  pass "check-plan"
else
  throw "plans differ from tests/golden: ${toJSON (map (p: "${p.fleet}/${p.node}") changed)}"
