# Builder of a folder with promtool: rootfs.sh without what makes a root of it.
# in: as rootfs.sh, and $common = rootfs.sh
set -eu
export LC_ALL=C
sourced=1
. "$common"
unpack
# A shell builtin: Nix 2.8 sometimes kills a builder whose last command is a child process.
exit 0
