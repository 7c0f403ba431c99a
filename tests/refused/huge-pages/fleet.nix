# Pages that a boot takes from the memory that the model is planned for.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  kernel.args = [ "hugepages=60000" "mem=32G" "crashkernel=64G" "pcie_aspm=off" ];
}
