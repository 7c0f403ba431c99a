#!/bin/busybox sh
# First process of the guest: mounts the disk and the machine's store, and becomes systemd.
bb=/bin/busybox
$bb mkdir -p /proc /sys /dev /root /given
$bb mount -t proc proc /proc
$bb mount -t devtmpfs dev /dev
for module in $($bb cat /first); do $bb modprobe "$module"; done
$bb mount -t ext4 /dev/vda /root
$bb mkdir -p /root/nix/store
share=trans=virtio,version=9p2000.L,msize=262144
# Nothing in a store changes, so the guest may keep all that it has read.
$bb mount -t 9p -o "ro,cache=loose,$share" store /root/nix/store
# What makes this guest the node that it is: names, keys, network links.
$bb mount -t 9p -o "ro,$share" given /given
$bb cp -Rf /given/. /root/
$bb umount /given
$bb umount /proc
exec $bb switch_root /root /lib/systemd/systemd
