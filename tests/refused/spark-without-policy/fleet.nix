# Sparks whose operating system nobody looks after.
{
  imports = [ ../../../hosts/tp4-switched/fleet.nix ({ lib, ... }: { host.platform = lib.mkForce "none"; }) ];
}
