# Clocks of CPU and GPU. Both are run-time state that a driver recovery or a package's script takes back, so a timer sets
# them again.
{ lib, config, ... }:
let
  inherit (lib) mkIf mkOption types;
  cfg = config.clocks;
  render = import ./types/unit.nix lib;
  cpu = lib.optional (cfg.governor != null)
    "/bin/sh -c 'set -e; for f in /sys/devices/system/cpu/cpufreq/policy*/scaling_governor; do echo ${cfg.governor} >\"$$f\"; done'";
  gpu = lib.optional (cfg.gpuMaxMHz != null) "/usr/bin/nvidia-smi --lock-gpu-clocks=0,${toString cfg.gpuMaxMHz}";
in
{
  options.clocks = {
    governor = mkOption {
      type = types.nullOr (types.enum [ "performance" "schedutil" ]);
      default = "performance";
      example = null;
      description = ''
        How the CPU chooses its clock. performance: a decode step wakes threads for some 20 us each, and a core that must
        speed up first is late every time. null leaves it as it is.
        Changes: sparkserve-clocks.service, sparkserve-clocks.timer.
      '';
    };
    gpuMaxMHz = mkOption {
      # 3003: the most that a GB10 takes.
      type = types.nullOr (types.ints.between 300 3003);
      default = null;
      example = 2200;
      description = ''
        The highest clock of the GPU. 2200 keeps a node cooler and costs 0.7 to 1.5 % of decode and up to 5 % of prefill.
        null sets none; a lock that was set stays until a reboot or `nvidia-smi --reset-gpu-clocks`.
        Changes: sparkserve-clocks.service, /etc/udev/rules.d/60-sparkserve.rules.
      '';
    };
  };

  config.host.units = mkIf (config.host.platform != "none" && cpu ++ gpu != [ ]) {
    "sparkserve-clocks.service" = render {
      Unit = {
        Description = "sparkserve: clocks of CPU and GPU";
        After = "nvidia-persistenced.service";
      };
      Service = {
        Type = "oneshot";
        ExecStart = cpu ++ gpu;
        # A driver without memory blocks nvidia-smi for minutes.
        TimeoutStartSec = "20";
        ProtectHome = "yes";
        NoNewPrivileges = "yes";
      };
    };
    "sparkserve-clocks.timer" = render {
      Unit.Description = "sparkserve: clocks of CPU and GPU, again";
      Timer = {
        OnBootSec = "5";
        OnUnitActiveSec = "30";
        AccuracySec = "5";
      };
      Install.WantedBy = "timers.target";
    };
  };
}
