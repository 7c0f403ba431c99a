# A cache of so many tokens that its bytes, in 64 bits, are 7,420.
{ lib, ... }: {
  imports = [ ../../policy/hosts/spark/fleet.nix ];
  engine.kvTokens = lib.mkForce 137801098671872;
}
