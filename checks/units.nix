# Proves: the systemd units of every node are those in tests/golden/FLEET/units, where the head's and a worker's stand.
# Costs: 20 ms. A wanted change: copy the units of a built host closure there, with its path written as @out@.
{ lib, fleets, pass }:
let
  units = import ../nix/units.nix { inherit lib; };
  golden = ../tests/golden/local-triangle/units;
  read = node: builtins.mapAttrs (name: _: builtins.readFile (golden + "/${node}/${name}")) (builtins.readDir (golden + "/${node}"));
  plans = fleets.local-triangle.plans;
  changed = builtins.filter (node: units plans.${node} != read node) [ "spark-0" "spark-1" ];
in
if changed == [ ] && units fleets.local-single.plans.spark-0 == { } then
  pass "check-units"
else
  throw "units differ from tests/golden: ${toString changed}"
