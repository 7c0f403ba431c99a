# The root of a QEMU guest: that of a laptop node with what a machine of its own also runs (udev, networkd, NFS).
{ rootfs, pins, source }:
rootfs {
  name = "vm-root";
  debs = pins.base.debs ++ pins.node.debs ++ builtins.filter (deb: builtins.match "linux-image-.*" deb.name == null) pins.vm.debs;
  script = ./root.sh;
  more = {
    files = source ../node-root/files;
    bootable = source ../../nix/bootable.sh;
  };
}
