# Builder of a root that boots: rootfs.sh, then what systemd, sshd and Nix need that maintainer scripts would have made.
# in: as rootfs.sh, $common = rootfs.sh, and $files, a folder that is laid over the root
set -eu
export LC_ALL=C
sourced=1
. "$common"
unpack
configure

etc=$out/etc
system=$etc/systemd/system

# A system account has no shell; * is no password at all.
account() { # NAME ID HOME
  echo "$1:*:$2:$2::$3:/usr/sbin/nologin" >>"$etc/passwd"
  echo "$1:*:$2:" >>"$etc/group"
}
account messagebus 101 /nonexistent
account systemd-network 102 /run/systemd
account sshd 103 /run/sshd
echo "systemd-journal:*:104:" >>"$etc/group"

# The files of init that only scripts of other packages would write.
bb mkdir -p "$system/multi-user.target.wants" "$etc/nix" "$out/var/log/journal" "$out/mnt" "$out/nix" "$out/boot/grub"
bb ln -s /lib/systemd/system/ssh.service "$system/multi-user.target.wants/ssh.service"
bb ln -s /lib/systemd/system/multi-user.target "$system/default.target"

# What a node has no hardware, no right or no reason for. Each of these would fail or touch the machine's kernel.
# networkd-wait-online: this netplan (0.106) has it wait for interfaces that are optional; that of DGX OS has not.
for unit in \
  systemd-udevd.service systemd-udev-trigger.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
  systemd-modules-load.service modprobe@.service systemd-remount-fs.service systemd-random-seed.service \
  systemd-pstore.service systemd-timesyncd.service systemd-resolved.service systemd-networkd-wait-online.service \
  systemd-firstboot.service systemd-sysusers.service systemd-update-utmp.service \
  systemd-update-utmp-runlevel.service systemd-logind.service \
  sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
  dev-hugepages.mount dev-mqueue.mount proc-sys-fs-binfmt_misc.automount \
  getty.target getty-static.service console-getty.service e2scrub_reap.service e2scrub_all.timer fstrim.timer \
  systemd-ask-password-console.path systemd-ask-password-wall.path; do
  bb ln -sf /dev/null "$system/$unit"
done

bb cp -R "$files"/. "$out"
bb chmod -R u+w "$out"
bb chmod 0755 "$out"/usr/lib/systemd/system-shutdown/* "$out"/usr/sbin/update-grub "$out"/usr/local/sbin/*
exit 0
