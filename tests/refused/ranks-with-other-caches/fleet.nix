# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  engine.kvTokens = lib.mkForce (if config.node.rank == 1 then 700000 else 600000);
}
