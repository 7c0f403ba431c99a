# Builder of a root folder. Runs under busybox sh with nothing but busybox.
# in: $debs $mountpoints $busybox   out: $out
set -eu
export PATH=/bb
umask 022
bb() { "$busybox" "$@"; }

unpack() {
  # Merged /usr: the links stand before the packages come, and tar unpacks through them.
  bb mkdir -p "$out/usr/bin" "$out/usr/sbin" "$out/usr/lib" "$out/usr/lib64"
  for d in bin sbin lib lib64; do bb ln -s "usr/$d" "$out/$d"; done
  for deb in $debs; do
    bb rm -rf part
    bb mkdir part
    (cd part && bb ar x "$deb")
    # -o: files belong to the builder; a sandbox cannot chown.
    case $(cd part && echo data.tar.*) in
      data.tar.xz) bb unxz -c part/data.tar.xz | bb tar -x -o -f - -C "$out" ;;
      data.tar.gz) bb gunzip -c part/data.tar.gz | bb tar -x -o -f - -C "$out" ;;
      *) echo "PIN.HASH | data.tar.xz or data.tar.gz in $deb | $(bb ls part) | rootfs.sh | Teach rootfs.sh this compression." >&2; exit 1 ;;
    esac
  done
  # busybox tar has no --exclude.
  for d in doc man locale info lintian bug doc-base menu bash-completion; do bb rm -rf "$out/usr/share/$d"; done
}

# What the maintainer scripts would have made, whatever machine the root is for.
settle() {
  bb mkdir -p "$out/etc/ssl/certs" "$out/tmp" "$out/var/tmp" "$out/root" "$out/run" "$out/proc" "$out/sys" "$out/dev"
  for d in $mountpoints; do bb mkdir -p "$out$d"; done
  bb cp "$out/usr/share/base-passwd/passwd.master" "$out/etc/passwd"
  bb cp "$out/usr/share/base-passwd/group.master" "$out/etc/group"
  bb cp "$out/usr/share/libc-bin/nsswitch.conf" "$out/etc/nsswitch.conf"
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$out/etc/hosts"
  # Sorted by the shell's glob in the C locale, so the bundle is the same everywhere.
  for crt in "$out"/usr/share/ca-certificates/mozilla/*.crt; do bb cat "$crt"; done >"$out/etc/ssl/certs/ca-certificates.crt"
  bb ln -sf python3.11 "$out/usr/bin/python3"
  # The distribution's sitecustomize installs a crash reporter.
  bb rm -f "$out/usr/lib/python3.11/sitecustomize.py"
  # NIS is the only user of six Kerberos and RPC libraries, which are not pinned.
  bb rm "$out"/usr/lib/python3.11/lib-dynload/nis.*
}

# The same, and the loader's cache: for a root whose programs run on this machine.
configure() {
  settle
  # -i and the removed aux-cache: it records inode numbers and times of this build.
  "$out/usr/sbin/ldconfig" -i -r "$out"
  bb rm -rf "$out/var/cache/ldconfig"
}

# Byte code that depends on nothing but the source. Without -B the interpreter would write timestamp .pyc of what it
# imports meanwhile: stale as soon as Nix sets mtime 1, and with this store path inside.
# $@: how to call Python
compile_stdlib() {
  "$@" -B -I -S -m compileall -q -f -j 2 -s "$out" -p / --invalidation-mode unchecked-hash "$out/usr/lib/python3.11"
}

if [ -z "${sourced-}" ]; then
  export LC_ALL=C
  unpack
  configure
  lib=$out/usr/lib/x86_64-linux-gnu
  compile_stdlib "$lib/ld-linux-x86-64.so.2" --argv0 "$out/usr/bin/python3.11" --library-path "$lib" "$out/usr/bin/python3.11"
  # Ends with a shell builtin: Nix 2.8 sometimes kills a builder whose last command is a child process.
  exit 0
fi
