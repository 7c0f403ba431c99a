# Keys in the store, which everybody can read, by another path.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.apiKeyFile = "/etc/../nix/store/x";
}
