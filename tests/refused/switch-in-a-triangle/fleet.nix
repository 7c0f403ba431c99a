# Ports at a switch that is not there.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.switchPorts = [ 0 1 ];
}
