# An idle group that is asked for a token when it is already given up.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  group.canaryS = 100;
  group.lostS = 2;
}
