# Builder: the files of the kernel's package. in: as nix/rootfs.sh, and $common, that file
set -eu
sourced=1
. "$common"
unpack
exit 0
