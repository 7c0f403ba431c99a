# Pages that a boot takes from the memory that the model is planned for.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  kernel.args = [ "hugepages=60000" "default-hugepagesz=1G" "mem=32G" "pcie_aspm=off" ];
  host.kernelArgs = [ "crashkernel=64G" ];
}
