# The root that builders and the harness run in: the base packages plus patchelf and bubblewrap, every program patched
# to use this root's own loader and libraries. It works from its store path, without a chroot, and so do its child
# processes: `sys.executable` in a subprocess is the closure's Python with the closure's libc.
{ rootfs, pins }:
rootfs {
  name = "tools";
  debs = pins.base.debs ++ pins.tools.debs;
  script = ./tools.sh;
}
