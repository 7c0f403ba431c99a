"""A node in namespaces: a real sshd on loopback, a real profile of Nix, the harness that is shipped.

It has the store of this machine, and everything else of its own in a folder. No systemd.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evaluated
from deployrs_deployer import Target

from sparkserve import nix
from sparkserve.commands import PROFILE

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
NODE = "spark-0"
FILE = "etc/sparkserve-test"
# What systemd says of the rank's unit; nothing else here asks it.
SYSTEMCTL = "#!/bin/sh\nread -r state </run/rank && echo ActiveState=$state\n"
SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey /root/host
AuthorizedKeysFile /root/user.pub
StrictModes no
PidFile none
# What deploy-rs calls by its name. Nix is not there.
SetEnv PATH=/usr/local/bin
"""
# By the builder of all host closures, from a plan that has one file for its node.
CLOSURE = """
{{ text, plan }}:
let s = import {root}/nix {{ system = "x86_64-linux"; }}; in
s.runPython {{
  name = "host-test-${{text}}";
  script = {root}/nix/host.py;
  inherit (s.packages) sparkserve;
  closure = builtins.path {{ path = plan; name = "closure-test"; }};
  guard = "";
  pins = "{{}}";
}}
"""
START = "nix-store --init && nix-store --load-db </root/db && exec /usr/sbin/sshd -D -e -f /root/sshd_config"


class World:
    """The node; `folder` has its /etc, /run and /nix/var (as nixvar). The closures write "old" and "new"."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        root, self.tools = nix.build(["node-root", "node-tools"])
        for name in ("var", "run/sshd", "nixvar", "local", "only", "ssh"):
            (folder / name).mkdir(parents=True)
        shutil.copytree(root / "etc", folder / "etc", symlinks=True)
        (folder / "etc").chmod(0o755)
        (folder / "run/rank").write_text("inactive\n")
        (folder / "local/systemctl").write_text(SYSTEMCTL)
        (folder / "local/systemctl").chmod(0o755)
        (folder / "only/rm").symlink_to("/usr/bin/rm")
        self.old, self.new = self._closure("old"), self._closure("new")
        # There since the closures are: the root that builds them.
        tools = evaluated.value(f'"${{(import {ROOT}/nix {{ system = "x86_64-linux"; }}).tools}}"')
        self.sshd = self._start(root, Path(tools) / "usr/bin/bwrap")
        self.until("sshd", lambda: self.ssh("true").wait() == 0)

    def _closure(self, text: str) -> str:
        plan = json.loads((ROOT / "tests/golden/local-single/spark-0.json").read_text())
        plan["host"]["files"] = {f"/{FILE}": {"mode": "0644", "text": f"{text}\n"}}
        made = self.folder / f"plan-{text}"
        made.mkdir()
        (made / "plan.json").write_text(json.dumps(plan))
        (made / "closure.json").write_text("{}")
        expression = self.folder / "closure.nix"
        expression.write_text(CLOSURE.format(root=ROOT))
        words = [
            "--argstr",
            "text",
            text,
            "--argstr",
            "plan",
            str(made),
            "--out-link",
            str(self.folder / text),
        ]
        argv = ["nix-build", str(expression), *words]
        done = subprocess.run(argv, env=nix.environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    def _start(self, root: Path, bwrap: Path) -> subprocess.Popen[bytes]:
        folder = self.folder
        for key in ("host", "user"):
            words = ["-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/ssh/{key}"]
            subprocess.run([self.tools / "bin/ssh-keygen", *words], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (folder / "ssh/sshd_config").write_text(SSHD.format(port=port))
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'ssh/host.pub').read_text()}")
        options = [f"Port={port}", f"IdentityFile={folder}/ssh/user", "IdentitiesOnly=yes"]
        options.append(f"UserKnownHostsFile={folder}/known_hosts")
        self.options = [word for option in options for word in ("-o", option)]
        with (folder / "ssh/db").open("w") as db:
            paths = nix.closure([Path(self.old), Path(self.new)])
            subprocess.run(["nix-store", "--dump-db", *paths], stdout=db, check=True)
        # Its first process runs in namespaces, and takes all others with it.
        words = [
            "--unshare-pid",
            "--unshare-uts",
            "--hostname",
            NODE,
            "--cap-add",
            "ALL",
            "--die-with-parent",
        ]
        binds = {f"{root}/usr": "/usr", "/nix/store": "/nix/store"}
        words += [word for name, place in binds.items() for word in ("--ro-bind", name, place)]
        words += ["--tmpfs", "/usr/local"]
        own = {"etc": "/etc", "var": "/var", "run": "/run", "nixvar": "/nix/var", "ssh": "/root"}
        own |= {"local": "/usr/local/sbin", "only": "/usr/local/bin"}
        words += [word for name, place in own.items() for word in ("--bind", f"{folder}/{name}", place)]
        for name in ("bin", "sbin", "lib", "lib64"):
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        argv = [
            str(bwrap),
            *words,
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--",
            "/bin/sh",
            "-c",
            START,
        ]
        return subprocess.Popen(argv)

    def close(self) -> None:
        """End the node and all that runs on it."""
        self.sshd.kill()
        self.sshd.wait()

    def target(self, closure: str, **override: Any) -> Target:
        """What deploy-rs knows of the node."""
        profile = {"path": closure, "profilePath": PROFILE}
        settings = {"sshUser": "root", "user": "root", "sshOpts": self.options, "tempPath": "/run/sparkserve"}
        node = {"hostname": "127.0.0.1", "profiles": {"sparkserve": profile}}
        return Target({**settings, "nodes": {NODE: node}}, NODE, override=override)

    def ssh(self, line: str) -> subprocess.Popen[bytes]:
        """A session of the deployer that runs `line`."""
        program, *words = self.target(self.old).ssh(line)
        return subprocess.Popen([self.tools / "bin" / program, *words], stdin=subprocess.DEVNULL)

    def run(self, line: str) -> int:
        """The same, to its end: its exit code."""
        return self.ssh(line).wait(60)

    def deploy(self, closure: str) -> int:
        """What deploy-rs does to one node: a session that activates, one that waits, one that confirms."""
        target = self.target(closure)
        activate, wait = self.ssh(target.activate()), self.ssh(target.wait())
        assert wait.wait(60) == 0
        assert self.run(target.confirm()) == 0
        return activate.wait(60)

    def now(self) -> tuple[str | None, str | None]:
        """The current generation's closure, and the text that is in effect."""
        link, file = self.folder / "nixvar/nix/profiles/sparkserve", self.folder / FILE
        path = str((link.parent / link.readlink()).readlink()) if link.is_symlink() else None
        return path, file.read_text().strip() if file.exists() else None

    def until(self, what: str, true: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until `true` is."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, what
            time.sleep(0.1)
