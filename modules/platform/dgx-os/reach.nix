# An sshd that hangs is still active for systemd, and the node can only be reached by its power button.
{ lib, config, ... }:
let
  render = import ../../types/unit.nix lib;
  file = "/etc/sparkserve/sshd-answers";
in
{
  config.host = lib.mkIf (config.host.platform == "dgx-os") {
    files.${file} = {
      mode = "0755";
      text = ''
        #!/bin/bash
        # sshd greets whoever connects. Without a greeting in three tries it is started again; sessions go on.
        # With settings that sshd refuses, a restart would end the last one: then nothing is done.
        listens=$(/usr/sbin/sshd -T | sed -n 's/^listenaddress //p' | head -n 1)
        [ -n "$listens" ] || exit 1
        address=''${listens%:*}
        address=''${address#[}
        export port=''${listens##*:} address=''${address%]}
        for _ in 1 2 3; do
          greeting=$(timeout 10 bash -c 'exec 3<>"/dev/tcp/$address/$port" && head -c 4 <&3' 2>/dev/null)
          [ "$greeting" = SSH- ] && exit 0
          sleep 2
        done
        echo "sshd does not greet at $listens: it is started again"
        systemctl restart ssh.service
      '';
    };
    units."sparkserve-reach.service" = render {
      Unit = {
        Description = "sparkserve: sshd answers";
        After = "ssh.service";
      };
      Service = {
        Type = "oneshot";
        ExecStart = file;
        TimeoutStartSec = "90";
        OOMScoreAdjust = "-900";
        ProtectHome = "yes";
      };
    };
    units."sparkserve-reach.timer" = render {
      Unit.Description = "sparkserve: sshd answers, each minute";
      Timer = {
        OnBootSec = "60";
        OnUnitActiveSec = "60";
        AccuracySec = "10";
      };
      Install.WantedBy = "timers.target";
    };
  };
}
