# Keys that Nix copies to where everybody reads them.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.apiKeyFile = "${./fleet.nix}";
}
