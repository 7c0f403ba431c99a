# A fleet of no nodes.
{ lib, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fleet.nodes = lib.mkForce [ ];
}
