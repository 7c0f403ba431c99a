"""A fleet of three nodes, spoken to as a user does: files, `sparkserve` commands, the endpoint."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import engine_copy
import pytest
from nodes import attempt, ssh

from sparkserve.local import triangle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sparkserve.local.record import Fleet

FLEET = ("--fleet", "local-triangle")
NODES = ("spark-0", "spark-1", "spark-2")
ENGINE = "pgrep -f [s]glang"
SCHEDULER = "pgrep -f [s]glang::schedul"


class Commanded(NamedTuple):
    """local-triangle of a copy of this checkout."""

    copy: engine_copy.Copy

    def command(self, name: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of `sparkserve NAME`."""
        code, out = self.copy.run(name, *FLEET, "--json")
        return code, json.loads(out) if out else {}

    def up(self) -> dict[str, Any]:
        """`up`, which must serve."""
        code, said = self.command("up")
        assert code == 0, said
        return said

    def down(self) -> None:
        """`down`, which must leave nothing on."""
        code, _ = self.copy.run("down", *FLEET)
        assert code == 0
        assert not self.on()

    def refused(self) -> str:
        """`up`, which must fail with GROUP.BOOT and leave no engine and no health; why."""
        code, said = self.command("up")
        assert (code, said.get("error")) == (55, "GROUP.BOOT"), said
        assert self.health() != 200
        for node in self.fleet().nodes if self.on() else ():
            self.until("no engine", lambda: attempt(self.fleet(), node, ENGINE).stdout == "", 20)  # noqa: B023
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
        return triangle.exists("local-triangle")

    def fleet(self) -> Fleet:
        return triangle.load("local-triangle")

    def sh(self, node: str, command: str) -> str:
        return ssh(self.fleet(), node, command)

    def health(self) -> int:
        """The status of /health; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"{self._endpoint}/health", timeout=3) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def ask(self, question: str) -> str:
        """One greedy answer."""
        body = {"model": "smollm2-135m", "messages": [{"role": "user", "content": question}]}
        data = json.dumps({**body, "max_tokens": 16, "temperature": 0}).encode()
        url, kind = f"{self._endpoint}/v1/chat/completions", {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, data, kind), timeout=120) as answer:  # noqa: S310
            text: str = json.load(answer)["choices"][0]["message"]["content"]
        return text

    def until(self, what: str, true: Callable[[], bool], seconds: float) -> float:
        """Wait until `true` is; the seconds that it took."""
        begin = time.monotonic()
        while not true():
            assert time.monotonic() - begin < seconds, f"not within {seconds:.0f} s: {what}"
            time.sleep(0.05)
        return time.monotonic() - begin

    @property
    def _endpoint(self) -> str:
        return f"http://127.0.0.1:{self.copy.port}"


@contextmanager
def commanded(folder: Path, network: str) -> Iterator[Commanded]:
    """The copy, with its nodes off; afterwards nothing of them is left."""
    copy = engine_copy.make(folder, {"local-triangle": network})
    made = Commanded(copy)
    made.git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "copy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARKSERVE_CHECKOUT", str(copy.path))
        try:
            yield made
        finally:
            triangle.down("local-triangle", disks=True)
