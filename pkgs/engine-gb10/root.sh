# Builder of the base layer: a root for another machine than this one, so nothing of it runs here.
# in: as nix/rootfs.sh, $common = rootfs.sh, and $python, a Python of this machine with the root's version
set -eu
export LC_ALL=C
sourced=1
. "$common"
unpack
settle
# What update-alternatives would have made. Kernels are compiled by these names.
for name in gcc g++; do bb ln -s "$name-12" "$out/usr/bin/$name"; done
bb ln -s gcc-12 "$out/usr/bin/cc"
bb ln -s g++-12 "$out/usr/bin/c++"
# 60 MB that nothing here uses: a static Python, and the compiler of -flto.
bb rm "$out"/usr/lib/python3.11/config-3.11-*/*.a "$out"/usr/lib/gcc/*/12/lto1
# There is no /etc/ld.so.cache: every library of this root is in a folder where the loader looks without one, and of
# what the host's driver brings at run time no cache made here could know.
compile_stdlib "$python"
exit 0
