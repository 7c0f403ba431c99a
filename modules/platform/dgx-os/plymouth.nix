# A boot waits for plymouth to leave the console, without an end: a node whose splash hangs never comes up. It gets 30 s to
# leave, and is then told to.
{ lib, config, ... }:
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os") {
    "/etc/systemd/system/plymouth-quit-wait.service.d/zz-sparkserve.conf".text = import ../../types/unit.nix lib {
      Service = {
        # The empty one takes away the command of Ubuntu's unit.
        ExecStart = [ "" "-/usr/bin/timeout 30 /usr/bin/plymouth --wait" "-/usr/bin/plymouth quit" ];
        TimeoutStartSec = "40";
      };
    };
  };
}
