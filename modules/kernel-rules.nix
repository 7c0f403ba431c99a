# What a kernel must be (modules/kernel.nix).
{ lib, config, ... }:
let
  inherit (lib) mkIf;
  cfg = config.kernel;
  named64 = builtins.match ".*-64k" (toString cfg.release) != null;
  # Of all that decide: kho=off is ours.
  refused = lib.filter (arg: arg == "splash" || builtins.match "kho=.*" arg != null && arg != "kho=off")
    config.host.kernelArgs;
  # modprobe and boot arguments take - for _. r8127 is the RJ45 port's.
  needed = "mlx5_.*|ib_.*|rdma_.*|nvidia.*|nvme.*|r8127|ext4|vfat";
  asKernel = builtins.replaceStrings [ "-" ] [ "_" ];
  blocked = lib.filter (name: builtins.match needed (asKernel name) != null) cfg.blockedModules;

  # What the kernel takes or hides at boot is in no term of the memory model, and the guard cannot give it back.
  takes = "(${lib.concatStringsSep "|" [
    "mem" "memmap" "reserve_mem" "crashkernel" "cma" "numa_cma" "swiotlb" "kernelcore" "movablecore" "movable_node"
    "hugepages" "hugepagesz" "default_hugepagesz" "hugetlb_cma" "hugetlb_free_vmemmap" "vm\\.nr_hugepages"
    "sysctl\\.vm\\.[a-z_]+" "transparent_hugepage" "thp_anon" "thp_shmem" "cgroup_disable"
  ]})(=.*)?";
  # Ours with pages of 64 KiB (modules/kernel.nix).
  given = lib.filter (arg: arg != "transparent_hugepage=never") config.host.kernelArgs;
  taking = lib.unique (lib.filter (arg: builtins.match takes (asKernel arg) != null) given);
  pages = lib.filter (lib.hasPrefix "vm.nr_") (lib.attrNames config.host.sysctls);
in
{
  config.assertions = mkIf (config.host.platform != "none") [
    {
      assertion = cfg.pageSizeKiB == 4 || builtins.match "580(\\..*)?" cfg.driver != null;
      message =
        "kernel.pageSizeKiB = 64 with kernel.driver = \"${cfg.driver}\": drivers after 580 fault below 4 GiB borders "
        + "on such a kernel (open-gpu-kernel-modules#1269): use 4, or stay on 580";
    }
    {
      assertion = cfg.release == null || named64 == (cfg.pageSizeKiB == 64);
      message =
        "kernel.release = \"${toString cfg.release}\" has pages of ${if named64 then "64" else "4"} KiB, but "
        + "kernel.pageSizeKiB = ${toString cfg.pageSizeKiB}: change one of them";
    }
    {
      assertion = cfg.pageSizeKiB == 4 || config.memory.swap == "off";
      message =
        "memory.swap = \"keep\" with kernel.pageSizeKiB = 64: /swap.img was made for pages of 4 KiB, and no other kernel "
        + "takes it: set memory.swap to \"off\"";
    }
    {
      assertion = refused == [ ];
      message =
        "kernel.args or host.kernelArgs has \"${toString refused}\": kho=off and no splash are decided here, as RDMA "
        + "and the console depend on them: leave it out";
    }
    {
      assertion = blocked == [ ];
      message =
        "kernel.blockedModules has ${toString blocked}: without it a Spark has no GPU, no cables, no disk or no management "
        + "port: take it out of the list";
    }
    {
      assertion = taking == [ ];
      message =
        "kernel.args or host.kernelArgs has \"${toString taking}\", which changes what memory a node has, and the memory "
        + "model counts with all of it: leave it out";
    }
    {
      assertion = pages == [ ];
      message =
        "host.sysctls has ${toString pages}: huge pages are taken from the one memory of a Spark, and no program of it "
        + "uses them: leave it out";
    }
    {
      assertion = !(lib.hasPrefix "wl" config.fabric.managementInterface && builtins.elem "mt7925e" cfg.blockedModules);
      message =
        "kernel.blockedModules has mt7925e, the driver of fabric.managementInterface = "
        + "\"${config.fabric.managementInterface}\": use the RJ45 port enP7s7, or take mt7925e out of the list";
    }
  ];
}
