"""The bubblewrap command line, compared whole."""

from __future__ import annotations

from engine_values import closure, plan

from sparkserve.engine import runner

WHOLE = """
/nix/store/tools/usr/bin/bwrap
--json-status-fd 7
--unshare-user --uid 0 --gid 0 --cap-drop ALL
--unshare-pid --unshare-ipc --unshare-uts --hostname spark-0
--new-session
--clearenv
--setenv HOME /root
--setenv LANG C.UTF-8
--setenv OMP_NUM_THREADS 2
--ro-bind /nix/store/base /
--ro-bind /nix/store/site /opt/engine
--ro-bind /nix/store/model /model
--proc /proc
--dev /dev
--perms 1777 --size 67108864 --tmpfs /dev/shm
--perms 1777 --tmpfs /tmp
--perms 0755 --tmpfs /run
--perms 0700 --tmpfs /root
--chdir /root
--
/usr/bin/python3.11 -m sparkserve_launch
--model-path /model --host 127.0.0.1 --port 8888
"""


def test_whole_line() -> None:
    assert runner.command(plan(), closure(), status_fd=7) == WHOLE.split()


def test_without_status() -> None:
    line = WHOLE.replace("--json-status-fd 7", "")
    assert runner.command(plan(), closure()) == line.split()


def test_devices_and_paths_of_the_machine_come_last() -> None:
    given = plan(devices=["/dev/nvidia0"], binds=["/usr/lib/libcuda.so.1"])
    paths = (
        "--dev-bind /dev/nvidia0 /dev/nvidia0 --ro-bind /usr/lib/libcuda.so.1 /usr/lib/libcuda.so.1 --chdir"
    )
    assert runner.command(given, closure(), status_fd=7) == WHOLE.replace("--chdir", paths).split()


def test_plan_overrides_environment_of_the_root() -> None:
    line = WHOLE.replace("HOME /root", "HOME /elsewhere")
    assert runner.command(
        plan(env={"HOME": "/elsewhere", "OMP_NUM_THREADS": "2"}), closure(), status_fd=7
    ) == (line.split())
