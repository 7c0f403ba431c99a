# The kernel of a QEMU guest: vmlinuz, lib/modules with its index, and an initramfs that finds the root.
{ rootfs, runPython, pins, source, stage0, vm-root }:
let
  kernel = rootfs {
    name = "vm-linux";
    debs = builtins.filter (deb: builtins.match "linux-image-.*" deb.name != null) pins.vm.debs;
    script = ./unpack.sh;
    more.common = source ../../nix/rootfs.sh;
  };
in
runPython {
  name = "vm-kernel";
  script = source ./build.py;
  init = source ./init.sh;
  busybox = "${stage0}/busybox";
  root = vm-root;
  inherit kernel;
}
