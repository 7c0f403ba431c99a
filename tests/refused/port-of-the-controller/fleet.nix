# Two programs of a node at one port.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.port = 29400;
}
