# The root of a laptop node: Debian with systemd, sshd, Nix and network tools, from pinned packages that are only
# unpacked. A node boots it as the lower layer of an overlay (src/sparkserve/local).
{ rootfs, pins, source }:
rootfs {
  name = "node-root";
  debs = pins.base.debs ++ pins.node.debs;
  script = ../../nix/bootable.sh;
  more.files = source ./files;
}
