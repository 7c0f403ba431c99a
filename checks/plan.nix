# Proves: every fleet in hosts/ has plans, and those with a golden copy are equal to it. Costs: evaluation, 20 ms.
# A wanted change: ./sparkserve fleet plan FLEET --node NODE > tests/golden/FLEET/NODE.json
{ fleets, pass }:
let
  inherit (builtins) attrNames concatMap deepSeq fromJSON pathExists readFile toJSON;
  golden = fleet: node: ../tests/golden + "/${fleet}/${node}.json";
  plans = concatMap
    (fleet: map (node: { inherit fleet node; plan = fleets.${fleet}.plans.${node}; }) (attrNames fleets.${fleet}.plans))
    (attrNames fleets);
  changed = builtins.filter
    (p: deepSeq p.plan (pathExists (golden p.fleet p.node))
      && toJSON p.plan != toJSON (fromJSON (readFile (golden p.fleet p.node))))
    plans;
in
if changed == [ ] then
  pass "check-plan"
else
  throw "the plans of ${toJSON (map (p: "${p.fleet}/${p.node}") changed)} are not their golden copies in tests/golden"
