"""Readers of units, of systemd's manager and of other services; as in system.py."""

from ipaddress import ip_interface

from box import Box, lines

# Programs of DGX OS that Debian does not have, and a unit whose kind matters to what changes it.
FOREIGN = ("/usr/bin/nvidia-smi", "/usr/bin/plymouth")
KINDS = {"plymouth-quit-wait.service": "oneshot"}


def units(box: Box, paths: list[str]) -> list[str]:
    """systemd-analyze verifies the units and those that a drop-in changes."""
    changed = {path.split("/")[4].removesuffix(".d") for path in paths}
    for unit in (unit for unit in changed - box.host["units"].keys() if unit.endswith(".service")):
        if not (box.root / "usr/lib/systemd/system" / unit).exists():
            text = f"[Service]\nType={KINDS.get(unit, 'simple')}\nExecStart=/usr/bin/true\n"
            box.write(f"/etc/systemd/system/{unit}", text)
    done = box.run("systemd-analyze", "verify", "--man=no", *sorted(changed | box.host["units"].keys()))
    return lines(done.stderr, but=f"Command ({'|'.join(FOREIGN)}) is not executable: No such file")


def manager(box: Box, paths: list[str]) -> list[str]:
    """systemd as a user's manager, which reads the same keys; a system's starts as the first process only."""
    for path in paths:
        box.write(path.replace("system.conf.d", "user.conf.d"), box.at(path).read_text())
    options = ("--setenv", "XDG_RUNTIME_DIR", "/run")
    done = box.run("/usr/lib/systemd/systemd", "--test", "--user", uid=1000, options=options)
    # A box has no cgroup, so that is all it does.
    return lines(done.stderr, but="Cannot determine cgroup|Failed to allocate manager object")


def sshd(box: Box, paths: list[str]) -> list[str]:
    """sshd says what it would run with, beside a file of another program that sets the same."""
    box.write("/etc/ssh/sshd_config", (box.root / "usr/share/openssh/sshd_config").read_text())
    other = "LoginGraceTime 99\nMaxStartups 1\nPerSourceMaxStartups 1\n"
    box.write("/etc/ssh/sshd_config.d/50-cloud-init.conf", other)
    with (box.etc / "passwd").open("a") as accounts:
        accounts.write("sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n")
    box.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/key")
    box.at("/etc/ssh/key").chmod(0o600)
    done = box.run("/usr/sbin/sshd", "-T", "-h", "/etc/ssh/key", options=("--dir", "/run/sshd"))
    said = done.stdout.splitlines()
    wanted = [line.lower() for path in paths for line in lines(box.at(path).read_text(), but="^#")]
    return lines(done.stderr) + [line for line in wanted if line not in said]


def tmpfiles(box: Box, paths: list[str]) -> list[str]:
    """systemd-tmpfiles makes what the files say."""
    done = box.run("systemd-tmpfiles", "--create", *paths)
    return lines(done.stderr, but="Failed to (open|set|check)") + (
        [] if done.returncode == 0 else [f"{done.returncode}"]
    )


def exports(box: Box, paths: list[str]) -> list[str]:
    """exportfs makes its table, in which each client of each line has one entry."""
    box.write("/etc/exports", "")
    text = "".join(box.at(path).read_text() for path in paths)
    folders = [word for line in text.splitlines() for word in ("--dir", line.split()[0])]
    script = "mkdir -p /var/lib/nfs && exportfs -ra && cat /var/lib/nfs/etab"
    done = box.run("sh", "-c", script, options=tuple(folders))
    table = done.stdout.splitlines()
    clients = [client for line in text.splitlines() for client in line.split()[1:]]
    missing = [
        client for client in clients if not any(f"\t{client.split('(')[0]}(ro," in entry for entry in table)
    ]
    return lines(done.stderr) + missing


def netplan(box: Box, paths: list[str]) -> list[str]:
    """netplan's generator makes files for networkd, with each link's address and MTU."""
    script = "/usr/lib/netplan/generate && cat /run/systemd/network/*.network"
    done = box.run("sh", "-c", script)
    sections = done.stdout.split("[Match]\n")
    complaints = lines(done.stderr)
    for link in box.plan["fabric"]["links"]:
        address = ip_interface(f"{link['address']}/{link['prefix']}")
        wanted = (
            f"Name={link['interface']}\n",
            f"Address={address}\n",
            f"MTUBytes={box.plan['fabric']['mtu']}\n",
        )
        if not any(all(line in section for line in wanted) for section in sections):
            complaints += [f"no network with {wanted}"]
    return complaints


def nft(box: Box, paths: list[str]) -> list[str]:
    """nft checks the rules against the kernel, in a network of the box."""
    found = [box.run("nft", "-c", "-f", path, options=("--cap-add", "CAP_NET_ADMIN")) for path in paths]
    return [line for done in found for line in lines(done.stderr, done.stdout)]


def reach(box: Box, paths: list[str]) -> list[str]:
    """It is silent beside an sshd that greets, and has one started again that does not."""
    box.write("/etc/ssh/sshd_config", "Port 2222\n")  # a box has no right to the lower ones
    with (box.etc / "passwd").open("a") as accounts:
        accounts.write("sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n")
    box.run("ssh-keygen", "-A")
    box.write("/closure/bin/systemctl", '#!/bin/sh\necho "$@"\n', 0o755)
    options = ("--dir", "/run/sshd", "--setenv", "PATH", "/closure/bin:/usr/sbin:/usr/bin")
    alive = box.run("sh", "-c", f"/usr/sbin/sshd && {paths[0]}", options=options)
    gone = box.run(paths[0], options=options)
    silent = lines(alive.stdout, alive.stderr, gone.stderr)
    return silent if "restart ssh.service" in gone.stdout else [*silent, f"no restart: {gone.stdout}"]
