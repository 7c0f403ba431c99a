# An option that changes nothing there.
{
  imports = [ ../../policy/hosts/alone/fleet.nix ];
  fabric.mtu = 4096;
}
