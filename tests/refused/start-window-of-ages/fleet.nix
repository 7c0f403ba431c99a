# A time in seconds that nothing can count.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  group.startWindowS = 9223372036854775807;
}
