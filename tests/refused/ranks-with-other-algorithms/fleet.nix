# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  engine.env.NCCL_ALGO = lib.mkForce (if config.node.rank == 1 then "Tree" else "Ring");
}
