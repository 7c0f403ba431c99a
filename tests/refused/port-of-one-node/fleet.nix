# An option that changes nothing there.
{
  imports = [ ../../policy/hosts/alone/fleet.nix ];
  group.controlPort = 29300;
}
