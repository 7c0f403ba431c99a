# What a kernel must be (modules/kernel.nix).
{ lib, config, ... }:
let
  inherit (lib) mkIf;
  cfg = config.kernel;
  named64 = builtins.match ".*-64k" (toString cfg.release) != null;
  refused = lib.filter (arg: arg == "splash" || builtins.match "kho=.*" arg != null) cfg.args;
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
        "kernel.args has \"${toString refused}\": kho=off and no splash are decided here, as RDMA and the console "
        + "depend on them: leave it out";
    }
    {
      assertion = !(lib.hasPrefix "wl" config.fabric.managementInterface && builtins.elem "mt7925e" cfg.blockedModules);
      message =
        "kernel.blockedModules has mt7925e, the driver of fabric.managementInterface = "
        + "\"${config.fabric.managementInterface}\": use the RJ45 port enP7s7, or take mt7925e out of the list";
    }
  ];
}
