"""What the laptop fleet asks of the machine before it builds anything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.local import lock, port, triangle

if TYPE_CHECKING:
    from pathlib import Path


def test_taken_port_names_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        with pytest.raises(SparkserveError) as caught:
            port.check("127.0.0.1", number)
        assert caught.value.id == "HOST.PORT"
        assert f"process {os.getpid()} (" in caught.value.found
    port.check("127.0.0.1", number)


def test_address_of_another_machine() -> None:
    with pytest.raises(SparkserveError) as caught:
        port.check("192.0.2.1", 8888)
    assert caught.value.id == "HOST.PORT"
    assert "assign" in caught.value.found


def test_lock_on_a_full_disk(tmp_path: Path) -> None:
    """The limit of 0 bytes a file stands for it: flock needs no room, only the note of who holds it does."""
    script = (
        "import pathlib, resource, sys; from sparkserve.local import lock\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with lock.held(pathlib.Path(sys.argv[1]), 'f'): print('in', flush=True)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("in\n", "")


@pytest.mark.parametrize("name", ["../x", "/etc", "..", "", "a b", "a\nb", "a" * 5000, "\u202eabc"])
def test_what_can_be_no_name_has_no_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "root", lambda: tmp_path)
    with pytest.raises(SparkserveError) as caught:
        triangle.exists(name)
    assert (caught.value.id, caught.value.found) == ("FLEET.NAME", name)


def test_links_in_a_circle_are_no_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "state", lambda: tmp_path)
    (tmp_path / "local").symlink_to("local")
    assert not triangle.exists("f")


def test_second_holder_says_whom_it_waits_for(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys; from sparkserve.local import lock\n"
        "with lock.held(pathlib.Path(sys.argv[1]), 'f'): print('in', flush=True)"
    )
    with lock.held(tmp_path, "f"):
        # stdout and stderr to a file: the child must not keep the test's own pipes open.
        with (tmp_path / "out").open("w") as out:
            argv = [sys.executable, "-c", script, str(tmp_path)]
            path = os.pathsep.join(sys.path)
            child = subprocess.Popen(argv, stdout=out, stderr=out, env={**os.environ, "PYTHONPATH": path})
        deadline = time.monotonic() + 20
        while "waiting" not in (tmp_path / "out").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert child.poll() is None
        assert f"pid {os.getpid()}" in (tmp_path / "out").read_text()
    assert child.wait(20) == 0
    assert (tmp_path / "out").read_text().endswith("in\n")
