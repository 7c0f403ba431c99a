"""A fleet of three nodes, spoken to as a user does: files, `sparkserve` commands, the endpoint."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import endpoint
import engine_copy
from group_fleet import FLEET, inside
from nodes import attempt, ssh, until

from sparkserve.local import triangle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.local.record import Fleet

ENGINE = "pgrep -f [s]glang"
SCHEDULER = "pgrep -f [s]glang::schedul"


class Commanded(NamedTuple):
    """local-triangle of a copy of this checkout."""

    copy: engine_copy.Copy

    def command(self, name: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of `sparkserve NAME`."""
        code, out = self.copy.run(name, "--fleet", FLEET, "--json")
        return code, json.loads(out) if out else {}

    def up(self) -> dict[str, Any]:
        """`up`, which must serve."""
        code, said = self.command("up")
        assert code == 0, said
        return said

    def down(self) -> None:
        """`down`, which must leave nothing on."""
        code, _ = self.copy.run("down", "--fleet", FLEET)
        assert code == 0
        assert not self.on()

    def refused(self) -> str:
        """`up`, which must fail with GROUP.BOOT and leave no engine and no health; why."""
        code, said = self.command("up")
        assert (code, said.get("error")) == (55, "GROUP.BOOT"), said
        assert self.health() != 200
        for node in self.fleet().nodes if self.on() else ():
            until("no engine", lambda: attempt(self.fleet(), node, ENGINE).stdout == "", 20)  # noqa: B023
        found: str = said["found"]
        return found

    def change(self, path: str, *pairs: tuple[str, str]) -> None:
        """Replace text that is once in a file of the copy."""
        file = self.copy.path / path
        text = file.read_text()
        for old, new in pairs:
            assert text.count(old) == 1, (path, old)
            text = text.replace(old, new)
        file.write_text(text)

    def write(self, path: str, text: str) -> None:
        """A new file in the copy, which Nix sees."""
        file = self.copy.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.git("add", path)

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.copy.path, check=True)

    def mend(self) -> None:
        """The copy's files as they were at first."""
        self.git("reset", "--quiet", "--hard")

    def on(self) -> bool:
        """Whether anything of its nodes is there."""
        return triangle.exists(FLEET)

    def fleet(self) -> Fleet:
        return triangle.load(FLEET)

    def sh(self, node: str, command: str) -> str:
        return ssh(self.fleet(), node, command)

    def health(self) -> int:
        return endpoint.health(self.copy.port)

    def ask(self, question: str) -> str:
        return endpoint.ask(self.copy.port, question)


@contextmanager
def commanded(folder: Path, network: str) -> Iterator[Commanded]:
    """The copy, with its nodes off; afterwards nothing of them is left."""
    copy = engine_copy.make(folder, {FLEET: network})
    made = Commanded(copy)
    made.git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "copy")
    with inside(copy):
        try:
            yield made
        finally:
            triangle.down(FLEET, disks=True)
