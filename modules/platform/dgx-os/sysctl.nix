# Kernel settings, applied by systemd-sysctl at each boot.
{ lib, config, ... }:
{
  # Files are read in the order of their names and the last wins: zz comes after the 90-*.conf of DGX OS and after
  # 99-sysctl.conf, which is the owner's own /etc/sysctl.conf.
  config.host.files = lib.mkIf (config.host.platform == "dgx-os" && config.host.sysctls != { }) {
    "/etc/sysctl.d/zz-sparkserve.conf".text =
      lib.concatStringsSep "" (lib.mapAttrsToList (name: value: "${name} = ${value}\n") config.host.sysctls);
  };
}
