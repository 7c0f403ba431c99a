# Keys where the front's unit sees nothing.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.apiKeyFile = "/home/mia/key";
}
