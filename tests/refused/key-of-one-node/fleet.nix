# A key for an engine that has no front to ask for it.
{
  imports = [ ../../policy/hosts/alone/fleet.nix ];
  serving.apiKeyFile = "/etc/x";
}
