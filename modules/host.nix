# What a host closure puts on its node. Other modules decide values; the files of modules/platform write them down in the
# form of their operating system; src/sparkserve/host puts them there, checks that they count, and takes them away.
{ lib, ... }:
let
  inherit (lib) mkOption types;
  text = import ./types/text.nix lib;
  file.options = {
    text = mkOption {
      type = types.str;
      description = "What is in the file. @out@ stands for the host closure.";
    };
    mode = mkOption {
      type = types.strMatching "0[0-7]{3}";
      default = "0644";
      description = "Permissions in octal. Files are copied to the node, as a store path is readable by all.";
    };
  };
in
{
  options.host = {
    platform = mkOption {
      type = types.enum [ "none" "dgx-os" ];
      default = "none";
      description = ''
        What the policy is written down for. dgx-os: NVIDIA's Ubuntu on a DGX Spark, by the files of
        modules/platform/dgx-os. none: no file of the operating system is written, as on a machine that only tries the
        engine.
      '';
    };
    files = mkOption {
      type = text.setOf text.etcFile (types.submodule file);
      default = { };
      description = "Files of the node by absolute path. What lay there before is kept, and comes back on deactivation.";
    };
    units = mkOption {
      type = text.setOf (text.unit "service|socket|mount|automount|swap|target|path|timer|slice" "own.service")
        types.nonEmptyStr;
      default = { };
      description = "systemd units by name. @out@ stands for the host closure: a unit runs the closure it is part of.";
    };
    mask = mkOption {
      type = types.listOf (text.unit "service|socket|path|timer|swap" "cups.service");
      default = [ ];
      description = "Units of the operating system that must not run, such as cups.service.";
    };
    defaultTarget = mkOption {
      type = types.nullOr (text.unit "target" "multi-user.target");
      default = null;
      description = "What the node boots into. null leaves it as it is.";
    };
    sysctls = mkOption {
      type = text.setOf text.sysctl text.line;
      default = { };
      description = "Kernel settings by sysctl name, with the values that /proc/sys must show.";
    };
    kernelArgs = mkOption {
      type = types.listOf text.kernelArg;
      default = [ ];
      description = "What must stand on the kernel's command line. A change counts after a reboot.";
    };
  };
}
