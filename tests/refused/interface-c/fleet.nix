# A name that means something else than one interface.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.managementInterface = "-c";
}
