# An endpoint without keys that a whole network can reach.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.host = "10.77.0.1";
}
