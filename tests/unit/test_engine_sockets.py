"""Whose socket answers on an endpoint."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from engine_values import run
from fake_engine import FakeEngine

from sparkserve.engine import procfs, ready, sockets
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local: str, inode: int, state: str = "0A") -> str:
    return f"   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0\n"


@pytest.mark.parametrize(
    ("tcp", "tcp6", "inodes"),
    [
        ([], [], set()),
        ([row("0100007F:22B8", 7)], [], {"7"}),
        ([row("0100007F:22B9", 7), row("0200007F:22B8", 8)], [], set()),  # another port, another address
        ([row("0100007F:22B8", 7, "01")], [], set()),  # a connection, not a listener
        ([row("00000000:22B8", 7)], [], {"7"}),
        ([row("00000000:22B8", 7), row("0100007F:22B8", 8)], [], {"8"}),
        ([row("0100007F:22B8", 7), row("0100007F:22B8", 8)], [], {"7", "8"}),  # SO_REUSEPORT
        ([], [row("0" * 32 + ":22B8", 9)], {"9"}),
        ([], [row("0000000000000000FFFF00000100007F:22B8", 9)], {"9"}),
        ([], [row("0" * 24 + "01000000:22B8", 9)], set()),  # ::1
        ([row("00000000:22B8", 7)], [row("0" * 32 + ":22B8", 9)], {"7"}),
    ],
)
def test_who_gets_a_connection(tcp: list[str], tcp6: list[str], inodes: set[str]) -> None:
    assert sockets.listeners(HEAD + "".join(tcp), HEAD + "".join(tcp6), "127.0.0.1", 8888) == inodes


def test_another_process_that_answers_is_not_the_engine(tmp_path: Path) -> None:
    files = NodeFiles(tmp_path, "local-single", "spark-0")
    files.prepare()
    files.log.write_text("")
    with (
        FakeEngine() as server,
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child,
    ):
        try:
            engine = procfs.find(child.pid)
            assert engine is not None
            with pytest.raises(SparkserveError) as caught:
                ready.wait(run(engine, port=server.server_port), files, timeout_s=5)
        finally:
            child.kill()
    assert caught.value.id == "HOST.PORT"
    assert f"process {os.getpid()} (" in caught.value.found
