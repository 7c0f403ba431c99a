# A word for an endpoint that only its own node reaches.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.openToAll = true;
}
