# Modules that are never loaded.
{ lib, config, ... }:
let
  modules = config.kernel.blockedModules;
  # blacklist keeps it from loading by itself; install also from loading by its name, or for another module.
  block = module: "blacklist ${module}\ninstall ${module} /bin/false\n";
in
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os" && modules != [ ]) {
    "/etc/modprobe.d/zz-sparkserve.conf".text = lib.concatMapStringsSep "" block modules;
  };
}
