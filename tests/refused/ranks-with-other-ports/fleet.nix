# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  group.controlPort = lib.mkForce (if config.node.rank == 1 then 29300 else 29400);
}
