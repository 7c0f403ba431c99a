# Which kernel a node boots, with which arguments, into what.
{ lib, config, ... }:
let
  inherit (lib) mkIf mkOption types;
  cfg = config.kernel;
  text = import ./types/text.nix lib;
  major = builtins.match "([0-9]+)\\..*" (toString cfg.release);
  # Without a release the node boots what DGX OS gives it, and that is 7.0 today. An older kernel only logs that it does
  # not know the word.
  handover = cfg.release == null || builtins.fromJSON (lib.head major) >= 7;
in
{
  options.kernel = {
    release = mkOption {
      type = types.nullOr (types.strMatching "[0-9]+\\.[0-9]+\\.[0-9]+-[0-9]+-nvidia(-64k)?" // {
        description = "kernel release as uname -r says it, such as 7.0.0-1019-nvidia";
      });
      default = null;
      example = "6.17.0-1014-nvidia";
      description = ''
        The kernel that GRUB boots; it must be installed. null leaves the newest, and a package update then changes it at
        the next boot: an update to 7.0 showed as failed RDMA registrations weeks later (NV-Kernels#590).
        Changes: /etc/default/grub.d/zz-sparkserve.cfg, host.kernel.
      '';
    };
    pageSizeKiB = mkOption {
      type = types.enum [ 4 64 ];
      default = 4;
      example = 64;
      description = ''
        Size of a page of memory, which the kernel decides; a boot with another is a difference. With 64 the page tables
        of the GPU take 3.25 GiB of a node in place of 0.20, unless NVIDIA's memory saver packs them, and no decode step is
        faster (41.55 and 41.81 ms). Huge pages, of 512 MiB then, are off: the kernel would keep that much free for them.
        Changes: /etc/default/grub.d/zz-sparkserve.cfg, /etc/sysctl.d/zz-sparkserve.conf, host.kernel, memory.
      '';
    };
    driver = mkOption {
      type = types.strMatching "[0-9]{3}(\\.[0-9]+)*" // { description = "version of the NVIDIA driver, such as 580"; };
      default = "580";
      example = "595";
      description = ''
        The driver's version, or how it begins. It comes with DGX OS, and one that differs is a difference of the node.
        Changes: host.kernel.
      '';
    };
    args = mkOption {
      type = types.listOf text.kernelArg;
      default = [ ];
      example = [ "pcie_aspm=off" ];
      description = ''
        More arguments of the kernel. kho=off is there without being named: from 7.0 kexec handover turns about 9 GiB into
        memory that cannot be pinned, and NCCL ends with ENOMEM (NV-Kernels#590).
        Changes: /etc/default/grub.d/zz-sparkserve.cfg.
      '';
    };
    blockedModules = mkOption {
      type = types.listOf (types.strMatching "[a-z0-9_-]+" // { description = "name of a kernel module"; });
      default = [ "mt7925e" ];
      example = [ ];
      description = ''
        Modules that are never loaded. mt7925e is a Spark's Wi-Fi: its reset path oopses and takes the whole network stack
        with it, so the node is off for everybody.
        Changes: /etc/modprobe.d/zz-sparkserve.conf.
      '';
    };
    desktop = mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = ''
        Whether the node boots into a desktop. It takes memory of the pool that the model is in, and its allocations
        fragment it. Without one no splash is shown either: plymouth then never holds the console.
        Changes: host.default_target, /etc/default/grub.d/zz-sparkserve.cfg.
      '';
    };
    idleUnits = mkOption {
      type = types.listOf (text.unit "service|socket|path|timer|swap" "cups.service");
      default = [
        "bluetooth.service"
        "cups.service" "cups.socket" "cups.path" "cups-browsed.service"
        "snapd.service" "snapd.socket" "snapd.seeded.service" "snapd.snap-repair.timer"
        "fwupd-refresh.timer"
        # Looks for updates, with a peak of 850 MiB.
        "dgx-dashboard.service" "dgx-dashboard-admin.service"
      ];
      example = [ "cups.service" ];
      description = ''
        Units of DGX OS that a server has no use for. They are masked, as an update enables them again; their memory is
        the model's, and what they start by themselves falls into a measurement.
        Changes: host.mask.
      '';
    };
  };

  config = mkIf (config.host.platform != "none") {
    host.kernelArgs = lib.optional handover "kho=off"
      ++ lib.optional (cfg.pageSizeKiB == 64) "transparent_hugepage=never"
      ++ cfg.args;
    host.mask = cfg.idleUnits;
    host.defaultTarget = if cfg.desktop then "graphical.target" else "multi-user.target";
  };
}
