"""Three ranks as processes of one test: the plugin loaded and the groups made as SGLang does it.

Runs inside the engine's root. SGLang is imported once and the ranks are forked, so a scenario takes a second.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from sglang.srt import plugins
from sglang.srt.distributed import parallel_state

from sparkserve.adapters import report
from sparkserve.adapters.plugin import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 3
NAME = "oneshot-collectives"
LIMIT_S = 60


def environment(rank: int, settings: dict[str, Any]) -> str:
    """What the launcher passes: here all links are the loopback, two stripes to every peer."""
    link = {"interface": "lo", "address": "127.0.0.1", "peer_address": "127.0.0.1"}
    peers = [peer for peer in range(SIZE) if peer != rank]
    return json.dumps(
        {
            "schema": "sparkserve.adapters/1",
            "rank": rank,
            "size": SIZE,
            "adapters": [{"name": NAME, "settings": settings}],
            "links": [{**link, "peer": peer, "stripe": stripe} for peer in peers for stripe in (0, 1)],
        }
    )


class Ranks:
    """The ranks of one scenario: `work(rank, group)` runs on each, with the adapter's `settings[rank]`."""

    def __init__(
        self,
        work: Callable[[int, Any], None],
        settings: list[dict[str, Any]] | None = None,
        before: Callable[[int], None] = lambda rank: None,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp())
        given = settings or [{"timeout_s": 2}] * SIZE
        self.pids = [self._fork(rank, work, given[rank], before) for rank in range(SIZE)]

    def wait(self) -> tuple[list[int], list[list[dict[str, Any]]]]:
        """Exit codes (negative: killed by that signal) and the adapters' lines, by rank."""
        codes = [self._code(pid) for pid in self.pids]
        return codes, [self.lines(rank) for rank in range(SIZE)]

    def lines(self, rank: int) -> list[dict[str, Any]]:
        """The adapters' lines of a rank so far."""
        text = self.text(rank)
        return [
            json.loads(each.split(report.PREFIX, 1)[1]) for each in text.splitlines() if report.PREFIX in each
        ]

    def text(self, rank: int) -> str:
        """All that a rank said so far."""
        return (self._folder / str(rank)).read_text()

    def _fork(self, rank: int, work: Any, settings: dict[str, Any], before: Any) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            log = os.open(self._folder / str(rank), os.O_CREAT | os.O_WRONLY)
            os.dup2(log, 2)
            os.environ[VARIABLE] = environment(rank, settings)
            before(rank)
            plugins.load_plugins()
            dist.init_process_group(
                "gloo", init_method=f"file://{self._folder}/meet", world_size=SIZE, rank=rank
            )
            work(rank, parallel_state.init_world_group(list(range(SIZE)), 0, "gloo"))
            code = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        os._exit(code)

    def _code(self, pid: int) -> int:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        raise AssertionError(f"rank {self.pids.index(pid)} hangs: {[self.text(r) for r in range(SIZE)]}")
