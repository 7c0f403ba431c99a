# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.prefix = lib.mkForce (if config.node.rank == 1 then 11 else 10);
}
