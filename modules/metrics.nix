# What is counted for Prometheus, by the engine and by the node: docs/metrics.md.
{ lib, config, ... }:
let
  inherit (lib) mkIf mkOption types;
  render = import ./types/unit.nix lib;
in
{
  options.metrics = {
    engine = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Whether SGLang counts, and answers at /metrics of the endpoint. Gates and bench compare what it says with what
        they were told. A scrape takes 35 ms of its HTTP process on two cores.
        Changes: engine.args.
      '';
    };
    port = mkOption {
      # As those of the group: from 32768 on the kernel hands ports out to anybody.
      type = types.ints.between 1024 32667;
      default = 29410;
      example = 29420;
      description = ''
        Where each node serves its counters, on its management address.
        Changes: /etc/sparkserve/nftables.conf, metrics, sparkserve-firewall.service.
      '';
    };
  };

  config.host.units = mkIf (config.fleet.topology != "single") {
    "sparkserve-metrics.service" = render {
      Unit = {
        Description = "sparkserve: counters of this node for Prometheus";
        # Its address is on the management network.
        Wants = "network-online.target";
        After = "network-online.target";
      };
      Service = {
        Type = "notify";
        ExecStart = "@out@/bin/sparkserve metrics serve @out@";
        # A plan that it cannot read stays failed, for all to see: a restart would not mend it.
        Restart = "on-failure";
        RestartSec = "5";
        RestartPreventExitStatus = "35";
        WatchdogSec = "30";
        WatchdogSignal = "SIGKILL";
        # It must never be what an engine waits for, or lacks memory for: it takes 45 MiB.
        Nice = "10";
        CPUWeight = "10";
        IOSchedulingClass = "idle";
        MemoryMax = "128M";
        OOMScoreAdjust = "900";
        TasksMax = "64";
        # It reads what everybody may. It sees the engine in /proc, and starts nvidia-smi: so no ProcSubset, no
        # ProtectProc, no PrivateDevices.
        DynamicUser = "yes";
        CapabilityBoundingSet = "";
        ProtectHome = "yes";
        ProtectSystem = "strict";
        RestrictAddressFamilies = "AF_UNIX AF_INET";
        RestrictNamespaces = "yes";
        RestrictRealtime = "yes";
      };
      Install.WantedBy = "multi-user.target";
    };
  };
}
