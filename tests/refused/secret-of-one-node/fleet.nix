# An option that changes nothing there.
{
  imports = [ ../../policy/hosts/alone/fleet.nix ];
  serving.secrets.x = "/etc/x";
}
