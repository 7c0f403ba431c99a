# Ranks of one engine that do not agree on a cable.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.cables = let stripes = if config.node.rank == 0 then [ "10.9.0.0/24" "10.9.1.0/24" ] else null; in [
    { from = "spark-0.0"; to = "spark-1.1"; subnets = stripes; }
    { from = "spark-1.0"; to = "spark-2.1"; }
    { from = "spark-2.0"; to = "spark-0.1"; }
  ];
}
