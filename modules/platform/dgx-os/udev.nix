# A driver that was bound again, as after a recovery, has forgotten its clocks (modules/clocks.nix).
{ lib, config, ... }:
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os" && config.clocks.gpuMaxMHz != null) {
    "/etc/udev/rules.d/60-sparkserve.rules".text = ''
      ACTION=="bind", SUBSYSTEM=="pci", DRIVER=="nvidia", RUN+="/usr/bin/systemctl --no-block start sparkserve-clocks.service"
    '';
  };
}
