# What brings a node back, and keeps it reachable, when its engine takes all memory or its kernel stops.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkIf mkOption types;
  cfg = config.recovery;
  render = import ./types/unit.nix lib;
  text = import ./types/text.nix lib;
  mib = value: "${toString value}M";
  # 64: the memory guard's own.
  total = lib.foldl' (sum: value: sum + value) 64 (lib.attrValues cfg.protect);

  protected = unit: memory: lib.nameValuePair "/etc/systemd/system/${unit}.d/zz-sparkserve.conf" {
    text = render {
      # Tried for ever: a node that nobody reaches needs a person beside it.
      Unit.StartLimitIntervalSec = "0";
      Service = {
        MemoryMin = mib memory;
        OOMScoreAdjust = "-900";
        Restart = "always";
        RestartSec = "5";
      };
    };
  };
in
{
  options.recovery = {
    watchdogS = mkOption {
      type = types.ints.between 10 600;
      default = 30;
      example = 60;
      description = ''
        Seconds without a sign of systemd after which the hardware resets the node. A frozen node answers pings and
        nothing else; without a watchdog somebody must pull its plug.
        Changes: /etc/systemd/system.conf.d/zz-sparkserve.conf.
      '';
    };
    rebootWatchdogS = mkOption {
      type = types.ints.between 60 3600;
      default = 600;
      example = 300;
      description = ''
        The same while a node shuts down: a driver that blocks does not keep it between off and on for ever.
        Changes: /etc/systemd/system.conf.d/zz-sparkserve.conf.
      '';
    };
    panicS = mkOption {
      type = types.ints.between 5 600;
      default = 30;
      example = 10;
      description = ''
        Seconds from a panic to the reboot: long enough for the message to get out. An oops is a panic: after one of the
        Wi-Fi driver the node ran on without a network.
        Changes: /etc/sysctl.d/zz-sparkserve.conf.
      '';
    };
    protect = mkOption {
      type = text.setOf (text.unit "service" "tailscaled.service") (types.ints.between 16 1024);
      default = { "ssh.service" = 128; };
      example = { "ssh.service" = 128; "tailscaled.service" = 256; };
      description = ''
        Services by which people reach a node, each with the MiB of memory that the kernel does not take from it. They are
        the last to be killed, and are started again always. What they keep beyond sshd's usual 128 is not the engine's.
        Changes: /etc/systemd/system/tailscaled.service.d/zz-sparkserve.conf,
        /etc/systemd/system/system.slice.d/zz-sparkserve.conf, memory.
      '';
    };
  };

  config = mkIf (config.host.platform != "none") {
    host.sysctls = {
      "kernel.panic" = mkDefault (toString cfg.panicS);
      "kernel.panic_on_oops" = mkDefault "1";
      # Out of memory is a process too many, not a broken kernel: kill one, and stay.
      "vm.panic_on_oom" = mkDefault "0";
    };
    assertions = [
      {
        assertion = cfg.protect ? "ssh.service";
        message =
          "recovery.protect has ${if cfg.protect == { } then "nothing" else toString (lib.attrNames cfg.protect)}, and not "
          + "\"ssh.service\": when memory runs out nobody reaches the node: add it, with 128";
      }
    ];
    host.files = lib.listToAttrs (lib.mapAttrsToList protected cfg.protect) // {
      # A group has at most what its parent keeps: without this the protection of the services is nothing.
      "/etc/systemd/system/system.slice.d/zz-sparkserve.conf".text = render { Slice.MemoryMin = mib total; };
    };
  };
}
