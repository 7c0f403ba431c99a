# Programs that build and reach the nodes from outside: mount, ip, nft, ssh and so on, taken from the node's root and
# pointed at its loader and libraries, so that a bare machine needs none of them installed.
{ runPython, source, tools, node-root }:
runPython {
  name = "node-tools";
  script = source ./build.py;
  patchelf = "${tools}/usr/bin/patchelf";
  root = node-root;
  programs = [
    "usr/bin/mount"
    "usr/bin/nsenter"
    "usr/bin/ssh"
    "usr/bin/ssh-keygen"
    "usr/bin/unshare"
    "usr/bin/ip"
    "usr/sbin/mkfs.ext4"
    "usr/sbin/nft"
    "usr/sbin/pivot_root"
    "usr/sbin/tc"
  ];
}
