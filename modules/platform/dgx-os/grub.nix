# The kernel's command line and the kernel to boot. update-grub reads these files as shell, after /etc/default/grub and in
# the order of their names, so the last one decides.
{ lib, config, ... }:
let
  inherit (config.kernel) desktop release;
  args = config.host.kernelArgs;
  # DGX OS gives splash, and a package of NVIDIA's may give kho=off already.
  taken = lib.concatStringsSep "|" (lib.optional (!desktop) "splash" ++ [ "kho=*" ] ++ args);
in
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os") {
    "/etc/default/grub.d/zz-sparkserve.cfg".text = ''
      sparkserve_words=
      for sparkserve_word in $GRUB_CMDLINE_LINUX_DEFAULT; do
        case $sparkserve_word in
          ${taken}) ;;
          *) sparkserve_words="$sparkserve_words $sparkserve_word" ;;
        esac
      done
      GRUB_CMDLINE_LINUX_DEFAULT="''${sparkserve_words# }${lib.concatMapStringsSep "" (arg: " ${arg}") args}"
    '' + lib.optionalString (release != null) ''
      # The name of a menu entry has the UUID of this node's disk in it, which update-grub knows.
      GRUB_DEFAULT="gnulinux-advanced-$GRUB_DEVICE_UUID>gnulinux-${release}-advanced-$GRUB_DEVICE_UUID"
    '';
  };
}
