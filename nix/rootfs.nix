# A root folder from Debian packages. Maintainer scripts do not run; rootfs.sh makes what they would have made.
# `mountpoints` are empty folders for what the runner mounts: a read-only root cannot grow them later.
# `more` are attributes that only a script of its own reads.
{ system, stage0, source }:
{ name, debs, mountpoints ? [ ], script ? ./rootfs.sh, more ? { } }:
derivation ({
  inherit system name mountpoints;
  builder = "${stage0}/busybox";
  args = [ "sh" (source script) ];
  busybox = "${stage0}/busybox";
  common = source ./rootfs.sh;
  debs = map (deb: deb.path) debs;
} // more)
