"""A node in a folder that deploy-rs changes, its deployer, and closures whose programs end as they are told.

The profile is made by the real nix-env where there is one, on a store of the folder's own.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from deployrs_deployer import Target
from host_node import Node as Folder
from host_node import closure as host_closure

from sparkserve.commands import PROFILE
from sparkserve.deploy.member import Member
from sparkserve.deployrs import canary
from sparkserve.deployrs.activate import main
from sparkserve.deployrs.node import Node
from sparkserve.host import record

if TYPE_CHECKING:
    from collections.abc import Mapping

NIX = shutil.which("nix-env") is not None
PROGRAMS = ("bin/activate", "bin/deactivate", "deploy-rs-activate", "activate-rs")


class PowerCutError(BaseException):
    """The node's power is gone: nothing of the process goes on."""


class World:
    """`codes` has what a program (by its path) ends with, 0 else; `called` are those that were run, in order,
    and `told` their environments. `steps` are what lasts; the power goes before that with the number `cut`.
    """

    def __init__(self, root: Path, *, nix: bool = NIX) -> None:
        self.root = root
        self.nix = nix
        self.folder = Folder(root)
        self.codes: dict[str, int] = {}
        self.called: list[str] = []
        self.told: list[dict[str, str]] = []
        self.steps: list[str] = []
        self.cut: int | None = None
        self.system = dataclasses.replace(self.folder.system, run=self._run, name="spark-1", step=self._step)
        for path in (PROFILE, "/usr/bin/nix-env", "/nix/store/x"):
            self.system.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.system.at("/usr/bin/nix-env").touch()
        self.node = Node(self.system, self._call)
        self.member = Member(self.system)

    def _step(self, name: str) -> None:
        if len(self.steps) == self.cut:
            raise PowerCutError(name)
        self.steps.append(name)

    def _run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        if argv[0] != "/usr/bin/nix-env":
            return self.folder.run(*argv)
        if self.nix:
            return self._nix("nix-env", *argv[1:])
        self._nix_env(Path(argv[2]), argv[3], argv[4])
        return subprocess.CompletedProcess(argv, 0, "", "")

    def _nix(self, *argv: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "NIX_REMOTE": f"local?root={self.root}", "NIX_CONFIG": "build-users-group ="}
        return subprocess.run(argv, capture_output=True, text=True, env=env)

    def _nix_env(self, profile: Path, verb: str, value: str) -> None:
        """As nix-env does: the newest generation is taken again when it is of the same path."""
        links = self.generations()
        number = int(value) if verb == "--switch-generation" else max(links, default=0)
        if verb == "--set" and links.get(number) != value:
            number += 1
            (profile.parent / f"sparkserve-{number}-link").symlink_to(value)
        profile.unlink(missing_ok=True)
        profile.symlink_to(f"sparkserve-{number}-link")

    def _call(self, program: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        path = f"/{program.relative_to(self.root)}"
        closure = re.match("/nix/store/[^/]*", path)
        assert program.exists() and closure
        self.called.append(path)
        self.told.append(dict(env))
        code = self.codes.get(path, 0)
        if code in (0, 75) and env.get("DRY_ACTIVATE") != "1":
            effect = None if path.endswith("/bin/deactivate") else closure[0]
            record.save(self.system, record.Record(node=effect and "spark-1", closure=effect))
        return subprocess.CompletedProcess([path], code, f"{program.name} ends with {code}\n", None)

    def closure(self, name: str, node: str = "spark-1") -> str:
        """A new closure of `node` in this node's store; its path there."""
        made = host_closure(self.root / name, node=node)
        (made / "bin").mkdir()
        for program in PROGRAMS:
            (made / program).touch()
        if self.nix:
            path = self._nix("nix-store", "--add", str(made)).stdout.strip()
            shutil.rmtree(made)
            return path
        path = f"/nix/store/{name.ljust(32, '0')}-{name}"
        made.rename(self.system.at(path))
        return path

    def bring(self, closure: str) -> None:
        """Activate a closure and make it current by other means."""
        self.node.switch(closure)
        self._call(self.system.at(f"{closure}/bin/activate"), {})
        self.forget()

    def forget(self) -> None:
        """Begin the lists anew."""
        self.called, self.told, self.steps = [], [], []

    def generations(self) -> dict[int, str]:
        """All generations, by number."""
        there = self.system.at(PROFILE).parent.glob("*-link")
        return {int(re.findall("[0-9]+", path.name)[-1]): str(path.readlink()) for path in there}

    def now(self) -> tuple[str | None, str | None, dict[int, str]]:
        """The closure that is current, the one in effect, and all generations."""
        before = self.node.before()
        return before.path, before.in_effect, self.generations()

    def target(self, closure: str, **override: object) -> Target:
        """What a deployer knows of this node."""
        profile = {"path": closure, "profilePath": PROFILE}
        node = {"hostname": "h", "profiles": {"sparkserve": profile}}
        settings = {"sshUser": "root", "user": "root", "tempPath": str(self.root / "run")}
        return Target({**settings, "nodes": {"n": node}}, "n", override=override)

    def run(self, line: str) -> int:
        """Run a command line of the deployer on the node; its exit code."""
        program, *words = shlex.split(line)
        try:
            main(program.removesuffix("/activate-rs"), words, self.node)
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    def deploy(self, closure: str, *flags: str, confirm: bool = True, **override: object) -> int:
        """What deploy-rs does to this node: activate, and confirm as soon as the canary is there."""
        target = self.target(closure, confirmTimeout=60 if confirm else 0, **override)
        ended = threading.Event()

        def deployer() -> None:
            path = Path(target.canary)
            while not ended.is_set():
                if canary.sings(path):
                    path.unlink()
                ended.wait(0.005)

        thread = threading.Thread(target=deployer)
        if confirm:
            thread.start()
        try:
            return self.run(target.activate(*flags))
        finally:
            ended.set()
            if confirm:
                thread.join()
