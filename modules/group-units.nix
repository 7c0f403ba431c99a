# The systemd units of the engine's group: a supervisor on every node, and the front on the head.
{ lib, config, ... }:
let
  render = import ./types/unit.nix lib;

  # What both keep from each other and from the node. Not ProtectKernelTunables, ProtectKernelLogs or ProcSubset: they
  # cover parts of /proc, and the kernel then forbids bubblewrap a /proc of its own in the engine's user namespace.
  hardening = {
    NoNewPrivileges = "yes";
    PrivateTmp = "yes";
    ProtectHome = "yes";
    ProtectSystem = "strict";
    RestrictRealtime = "yes";
    RestrictSUIDSGID = "yes";
    # Files that both read and write; the tmpfs copy must outlive a restart of either.
    RuntimeDirectory = "sparkserve";
    RuntimeDirectoryPreserve = "yes";
  };

  unit = description: extra: settings: render {
    Unit = { Description = "sparkserve ${description}"; After = "network.target"; } // extra;
    Service = hardening // { Type = "notify"; WatchdogSignal = "SIGKILL"; } // settings;
    Install.WantedBy = "multi-user.target";
  };

  # Ready only after a good sample; without it the supervisor is not started, or is started again with it.
  guarded = lib.optionalAttrs config.guard.enable {
    After = "network.target sparkserve-guard.service";
    Requires = "sparkserve-guard.service";
  };

  rank = unit "supervisor, rank ${toString config.node.rank} of ${config.fleet.name}" guarded {
    ExecStart = "@out@/bin/sparkserve rank run @out@";
    # Also after a kill -9: nobody may go on reading that the group is up.
    ExecStopPost = "@out@/bin/sparkserve rank gone";
    # A rank that died comes back with its group, by `up`. One that only hung, as its whole node may, is killed with
    # its engine, and is there again: 20 s, as freeing an engine's memory may stop it for 10.
    WatchdogSec = "20";
    Restart = "on-watchdog";
    KillMode = "control-group";
    TimeoutStopSec = "30";
    # The engine is in a cgroup of its own below the unit's: the guard kills that.
    Delegate = "yes";
    # When memory is short the engine goes first, and sshd stays.
    OOMScoreAdjust = "500";
    LogsDirectory = "sparkserve";
    StateDirectory = "sparkserve";
  };

  # By default five starts in 10 s end all: at one a second, a port that another process still has would leave the group
  # without an endpoint until somebody comes.
  front = unit "front, ${config.fleet.name}" { StartLimitIntervalSec = "0"; } ({
    # It says so once a second. One that is stopped leaves every client without a word.
    WatchdogSec = "10";
    ExecStart = "@out@/bin/sparkserve front run --plan @out@/plan.json";
    Restart = "always";
    RestartSec = "1";
    TimeoutStopSec = "20";
    LimitNOFILE = "16384";
    # It needs 25 us when a token comes, and the engine's processes take every core they get.
    Nice = "-10";
  } // lib.optionalAttrs (config.serving.apiKeyCredential != null) {
    LoadCredentialEncrypted = "api-key:${config.serving.apiKeyCredential}";
  });
in
{
  config.host.units = lib.mkIf (config.fleet.topology != "single") {
    "sparkserve-rank.service" = rank;
    "sparkserve-front.service" = lib.mkIf (config.node.rank == 0) front;
  };
}
