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
        mkdir -p /run/sshd # where ssh.socket starts sshd, only after the first login, and sshd -T wants it
        listens=$(/usr/sbin/sshd -T | sed -nE 's/^listenaddress \[?([^]]*)\]?:([0-9]+)$/\1 \2/p')
        [ -n "$listens" ] || exit 1
        for _ in 1 2 3; do
          # It listens at [::] in its own words also where the kernel has no IPv6.
          while read -r address port; do
            greeting=$(timeout 8 bash -c "exec 3<>/dev/tcp/$address/$port && head -c 4 <&3" 2>/dev/null)
            [ "$greeting" = SSH- ] && exit 0
          done <<<"$listens"
          sleep 2
        done
        echo "sshd does not greet: it is started again"
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
        TimeoutStartSec = "120";
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
