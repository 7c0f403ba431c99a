# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  engine.args = lib.mkForce (if config.node.rank == 1 then [ "--b" ] else [ "--a" ]);
}
