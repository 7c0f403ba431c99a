# Limits of sessions: what a person starts by SSH, such as a test of the fabric, may pin memory as the rank's unit may.
{ lib, config, ... }:
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os") {
    "/etc/security/limits.d/zz-sparkserve.conf".text = ''
      # root is not among *.
      * - memlock unlimited
      root - memlock unlimited
    '';
  };
}
