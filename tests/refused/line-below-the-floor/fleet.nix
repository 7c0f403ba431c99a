# A guard that kills when the memory it promises is gone.
{ lib, ... }: {
  imports = [ ../../policy/hosts/spark/fleet.nix ];
  guard.steady.lineMiB = lib.mkForce 1;
}
