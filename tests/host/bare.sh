#!/bin/bash
# Runs a command in a clean clone of this checkout on a bare Debian: debootstrap in a folder, with this machine's
# package settings (mirror, proxy, certificates, pip's configuration) and nothing else of it.
# Usage: bare.sh SUITE MIRROR FOLDER COMMAND [COMMIT]. FOLDER is made, holds the machine's whole disk, and stays.
# Everything runs in mount and process namespaces of its own, so nothing stays mounted or running, however it ends.
set -euo pipefail
checkout=$(readlink -f -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")

make_machine() {
  local name
  debootstrap --variant=minbase "$suite" "$folder" "$mirror"
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
  # A site's own certificates; the bundle itself comes with the package that ./sparkserve installs.
  mkdir -p "$folder/usr/local/share/ca-certificates"
  cp -r /usr/local/share/ca-certificates/. "$folder/usr/local/share/ca-certificates/"
  grep -lsE '^ *Acquire::(Check|http|https)' /etc/apt/apt.conf.d/* |
    while read -r name; do cp "$name" "$folder/etc/apt/apt.conf.d/"; done
  for name in /etc/pip.conf /etc/xdg/pip /root/.config/pip; do
    if [[ -e $name ]]; then cp -rT "$name" "$folder$name" 2>/dev/null || cp -r --parents "$name" "$folder"; fi
  done
  git clone --quiet --no-local --no-checkout "$checkout" "$folder/root/sparkserve"
  git -C "$folder/root/sparkserve" checkout --quiet --detach "$commit"
}

pip_folders() { # the folders that pip is configured to find packages in; an index's pages point beside it
  { pip config list 2>/dev/null || true; } | grep -oE "/[^' ]+" | sed 's|^//*|/|; s|/simple/*$||' | sort -u |
    while read -r name; do if [[ -d $name ]]; then echo "$name"; fi; done
}

enter() { # runs as PID 1 of the new namespaces
  local name
  mount --bind "$folder" "$folder"
  mount -t proc proc "$folder/proc"
  mount -t sysfs sysfs "$folder/sys"
  mount --rbind /sys/fs/cgroup "$folder/sys/fs/cgroup"
  mount --rbind /dev "$folder/dev"
  mount -t tmpfs tmpfs "$folder/dev/shm"
  for name in $(pip_folders); do
    mkdir -p "$folder$name"
    mount --bind -o ro "$name" "$folder$name"
  done
  cd "$folder"
  mkdir -p .outside
  # A plain chroot forbids user namespaces, which the build sandbox needs.
  pivot_root . .outside
  umount -l /.outside
  local keep=()
  for name in $(compgen -e | grep -iE '^(PIP_|.*_CA_BUNDLE$|SSL_CERT_|(http|https|no)_proxy$)'); do
    keep+=("$name=${!name}")
  done
  # Not exec: PID 1 has to reap orphans, which bash does and a harness does not.
  env -i "${keep[@]}" HOME=/root TERM="${TERM:-dumb}" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    bash -c "cd /root/sparkserve && $command"
}

if [[ $1 == --enter ]]; then
  folder=$2 command=$3
  enter
  exit
fi
suite=$1 mirror=$2 folder=$3 command=$4 commit=${5:-HEAD}
[[ -e $folder/root/sparkserve ]] || make_machine
# In the background, because unshare does not listen to signals; the whole machine is switched off by killing it.
# With job control, because a background process without it ignores SIGINT, and so would all of the machine.
set -m
unshare --mount --propagation private --pid --fork --kill-child "$0" --enter "$folder" "$command" &
machine=$!
trap 'kill -KILL "$machine"' INT TERM HUP
wait "$machine"
