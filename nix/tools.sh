# Builder of the tools root: rootfs.sh, then patchelf over every program.
# in: as rootfs.sh, and $common = rootfs.sh
set -eu
export LC_ALL=C
sourced=1
. "$common"
unpack
configure
lib=$out/usr/lib/x86_64-linux-gnu
loader=$lib/ld-linux-x86-64.so.2

is_elf() { [ -f "$1" ] && [ ! -L "$1" ] && [ "$(bb head -c 4 "$1" | bb od -An -tx1)" = " 7f 45 4c 46" ]; }

bb cp "$out/usr/bin/patchelf" patchelf
for program in "$out"/usr/bin/* "$out"/usr/sbin/*; do
  is_elf "$program" || continue
  # A static program has no interpreter to set.
  "$loader" --library-path "$lib" ./patchelf --print-interpreter "$program" >/dev/null 2>&1 || continue
  # --force-rpath: DT_RPATH also serves the libraries that Python loads later, DT_RUNPATH would not.
  "$loader" --library-path "$lib" ./patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$lib" "$program"
done
compile_stdlib "$out/usr/bin/python3.11"
exit 0
