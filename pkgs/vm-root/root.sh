# Builder of the root of a QEMU guest.
# in: as nix/bootable.sh, and $bootable, that file
set -eu
(. "$bootable")
bb() { "$busybox" "$@"; }
system=$out/etc/systemd/system

# What a node in namespaces must not run, a machine must.
for unit in "$system"/*; do
  if [ -L "$unit" ] && [ "$(bb readlink "$unit")" = /dev/null ]; then bb rm "$unit"; fi
done
# A login prompt has nobody to ask, and these wait for what the kernel or the network of a guest never gives.
for unit in getty.target serial-getty@ttyS0.service systemd-firstboot.service systemd-networkd-wait-online.service; do
  bb ln -sf /dev/null "$system/$unit"
done
bb mkdir -p "$system/multi-user.target.wants" "$system/sockets.target.wants"
# As Ubuntu has it: a socket starts sshd.
bb rm "$system/multi-user.target.wants/ssh.service"
bb ln -s /lib/systemd/system/ssh.socket "$system/sockets.target.wants/"
bb ln -s /lib/systemd/system/systemd-networkd.service "$system/multi-user.target.wants/"
account() { # NAME ID HOME
  echo "$1:*:$2:$2::$3:/usr/sbin/nologin" >>"$out/etc/passwd"
  echo "$1:*:$2:" >>"$out/etc/group"
}
bb touch "$out/etc/exports"
bb cp "$out/usr/share/nfs-common/conffiles/idmapd.conf" "$out/etc/"
bb mkdir -p "$out/var/lib/nfs/rpc_pipefs" "$out/var/lib/nfs/sm" "$out/var/lib/nfs/v4recovery"
for name in etab rmtab state; do bb touch "$out/var/lib/nfs/$name"; done
account _rpc 105 /run/rpcbind
account statd 106 /var/lib/nfs
for group in input kvm render sgx; do echo "$group:*:$((200 + ${#group})):" >>"$out/etc/group"; done
exit 0
