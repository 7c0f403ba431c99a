# The bottom layer of every engine root: Python, a shell and their libraries, as Debian ships them.
{ rootfs, pins }:
rootfs {
  name = "engine-base";
  debs = pins.base.debs;
  mountpoints = [ "/opt/engine" "/opt/overlay" "/opt/adapters/sparkserve/adapters" "/model" ];
}
