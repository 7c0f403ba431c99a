# The memory guard: kills a node's engine before the memory that the node itself needs is gone. What it promises:
# docs/guard.md. The program: pkgs/guard.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkIf mkOption types;
  cfg = config.guard;
  render = import ./types/unit.nix lib;
  profile = import (./profiles + "/${config.serving.model}.nix");
  grouped = config.fleet.topology != "single";

  level = { floor, example, interval, what }: {
    floorMiB = mkOption {
      type = types.ints.between 256 65536;
      default = floor;
      inherit example;
      description = ''
        MiB of MemAvailable that are kept ${what}.
        Changes: guard, memory, sparkserve-guard.service.
      '';
    };
    intervalMs = mkOption {
      # The harness takes a guard that has been silent for 10 s for hung.
      type = types.ints.between 100 5000;
      default = interval;
      example = 1000;
      description = ''
        The longest time between two samples ${what}, in ms; the nearer the line, the shorter it is.
        Changes: guard, sparkserve-guard.service.
      '';
    };
    lineMiB = mkOption {
      type = types.ints.between 1 1000000;
      description = "MiB of MemAvailable below which the engine is killed. It follows from the floor and guard.rateMiBs.";
    };
  };

  # Memory that falls at the rate from one close sample to the end of the kill; rounded up.
  margin = (cfg.rateMiBs * (cfg.closestMs + cfg.killMs) + 999) / 1000;
  words = level: lib.concatMapStringsSep "," toString [ level.floorMiB level.lineMiB level.intervalMs ];
  # The supervisor makes it below its own (src/sparkserve/guard/cgroup.py): version 2, both, version 1.
  cgroups = map (root: "--cgroup ${root}/system.slice/sparkserve-rank.service/engine")
    [ "/sys/fs/cgroup" "/sys/fs/cgroup/unified" "/sys/fs/cgroup/systemd" ];
in
{
  options.guard = {
    enable = mkOption {
      type = types.bool;
      default = grouped;
      example = false;
      description = ''
        Whether an engine runs only under a guard. A Spark has one memory for CPU and GPU: when it is gone nothing is
        killed, sshd stops answering, and somebody must pull the plug.
        Changes: guard, sparkserve-guard.service, sparkserve-rank.service.
      '';
    };
    startup = level {
      floor = 5120;
      example = 6144;
      interval = 250;
      what = "until the engine serves: compilers and a load take more, and faster";
    };
    steady = level {
      floor = 3072;
      example = 512;
      interval = 2000;
      what = "while it serves; a TP3 head that serves 512K had 6 GiB left at its worst";
    };
    rateMiBs = mkOption {
      type = types.ints.between 100 32000;
      default = 8000;
      example = 4000;
      description = ''
        How fast MemAvailable may fall, in MiB a second, so that the floor still holds. A Spark loads 101 GB of weights in
        15 s: 6400 MiB/s. Every 1000 more move the line up by 50 MiB.
        Changes: guard, memory, sparkserve-guard.service.
      '';
    };
    closestMs = mkOption {
      type = types.ints.between 1 100;
      default = 5;
      example = 10;
      description = "The shortest time between two samples, in ms. Changes: guard, memory, sparkserve-guard.service.";
    };
    killMs = mkOption {
      type = types.ints.between 5 1000;
      default = 45;
      example = 100;
      description = ''
        From a sample below the line until nothing of the engine takes memory any more, in ms: docs/results/guard.md has
        what was measured. A driver that is in the middle of an allocation may take longer; that needs a Spark.
        Changes: guard, memory, sparkserve-guard.service.
      '';
    };
  };

  config.guard = {
    startup.floorMiB = mkIf (profile ? guard) (mkDefault profile.guard.startupMiB);
    steady.floorMiB = mkIf (profile ? guard) (mkDefault profile.guard.steadyMiB);
    startup.lineMiB = cfg.startup.floorMiB + margin;
    steady.lineMiB = cfg.steady.floorMiB + margin;
  };

  config.host.units = mkIf cfg.enable {
    "sparkserve-guard.service" = render {
      Unit = {
        Description = "sparkserve memory guard";
        # It comes and goes with the supervisor, so that a new closure has its own.
        PartOf = "sparkserve-rank.service";
        # Tried for ever: five starts that fail in 10 s would leave the node without a guard, and so without an engine.
        StartLimitIntervalSec = "0";
      };
      Service = {
        Type = "notify";
        ExecStart = lib.concatStringsSep " " ([
          "@out@/bin/guard"
          "--startup ${words cfg.startup}"
          "--steady ${words cfg.steady}"
          "--closest ${toString cfg.closestMs}"
          "--kill ${toString cfg.killMs}"
          "--state /run/sparkserve/guard.json"
          "--flags /run/sparkserve/guard.flags"
        ] ++ cgroups);
        # Without one no engine runs: the supervisor ends it as soon as the guard is gone.
        Restart = "always";
        RestartSec = "1";
        WatchdogSec = "30";
        WatchdogSignal = "SIGKILL";
        OOMScoreAdjust = "-1000";
        Nice = "-20";
        CPUWeight = "1000";
        # All of it is locked, so no limit below protects more.
        LimitMEMLOCK = "infinity";
        RuntimeDirectory = "sparkserve";
        RuntimeDirectoryPreserve = "yes";
        NoNewPrivileges = "yes";
        ProtectHome = "yes";
        ProtectSystem = "strict";
        RestrictAddressFamilies = "AF_UNIX";
      };
    };
  };

  config.assertions = map (name: {
    assertion = cfg.${name}.lineMiB == cfg.${name}.floorMiB + margin;
    message =
      "guard.${name}.lineMiB = ${toString cfg.${name}.lineMiB} is set, but it follows from guard.${name}.floorMiB and "
      + "guard.rateMiBs, and is ${toString (cfg.${name}.floorMiB + margin)}: the floor holds only with that: leave it out, "
      + "and change the floor";
  }) [ "startup" "steady" ]
  ++ [
    {
      assertion = cfg.startup.floorMiB >= cfg.steady.floorMiB;
      message =
        "guard.startup.floorMiB = ${toString cfg.startup.floorMiB} is below guard.steady.floorMiB = "
        + "${toString cfg.steady.floorMiB}: an engine that starts would pass, and be killed as soon as it serves; raise "
        + "guard.startup.floorMiB";
    }
    {
      assertion = cfg.enable -> grouped;
      message =
        "guard.enable = true for a fleet of one node: its engine is no unit of systemd, and runs in no cgroup of its own; "
        + "leave it out";
    }
  ];
}
