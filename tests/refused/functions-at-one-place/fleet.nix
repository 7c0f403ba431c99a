# Functions of a card that are all at one PCI address.
{ lib, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fleet.nodes = lib.mkForce (map (node: node // {
    ports = map (map (function: function // { pci = "0000:01:00.0"; })) (import ../../../nix/ports.nix);
  }) (import ../../policy/nodes.nix 3));
}
