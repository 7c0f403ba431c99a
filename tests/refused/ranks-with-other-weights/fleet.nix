# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  weights.path = lib.mkForce (if config.node.rank == 1 then "/srv/b" else "/srv/a");
}
