# Ranks of one engine that do not agree.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  adapters.oneshot-collectives.settings.split_bytes = lib.mkForce (if config.node.rank == 1 then 8192 else 4096);
}
