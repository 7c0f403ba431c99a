# systemd's own settings: the hardware watchdog (SBSA, /dev/watchdog0) that it feeds.
{ lib, config, ... }:
let
  inherit (config.recovery) rebootWatchdogS watchdogS;
in
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os") {
    "/etc/systemd/system.conf.d/zz-sparkserve.conf".text = import ../../types/unit.nix lib {
      Manager = {
        RuntimeWatchdogSec = toString watchdogS;
        RebootWatchdogSec = toString rebootWatchdogS;
      };
    };
  };
}
