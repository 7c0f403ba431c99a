# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.nccl = lib.mkForce (if config.node.rank == 1 then "stock" else null);
}
