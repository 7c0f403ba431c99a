# Two programs of a node at one port.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  group.enginePort = 29401;
}
