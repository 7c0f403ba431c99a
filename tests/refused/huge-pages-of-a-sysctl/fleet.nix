# Pages that are taken from the one memory.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  host.sysctls."vm.nr_hugepages" = "30000";
}
