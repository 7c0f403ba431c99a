# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.mtu = lib.mkForce (if config.node.rank == 1 then 4096 else 9000);
}
