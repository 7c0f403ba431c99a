"""Puts a host closure into effect on the node it runs on; the closure's `bin/activate` calls it.

It links the closure's units into systemd and checks that systemd took them. It starts and stops nothing: a
model load must not sit inside an activation, and it refuses while an engine runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.group import run_files
from sparkserve.output import print_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNITS = Path("/etc/systemd/system")
WANTS = "multi-user.target.wants"
OURS = "sparkserve-*.service"


def main(closure: str) -> None:
    """Activate and exit: 0, or the code of the error."""
    try:
        changed = activate(Path(closure))
    except SparkserveError as error:
        print_error(error, as_json=False)
        sys.exit(error.exit_code)
    sys.stdout.write("changed\n" if changed else "unchanged\n")


def _systemctl(*words: str) -> str:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _wrong(f"systemctl {' '.join(words)} to succeed", done.stderr.strip() or "no output", "systemd")
    return done.stdout


def activate(
    closure: Path,
    *,
    units: Path = UNITS,
    systemctl: Callable[..., str] = _systemctl,
    runs: Path = run_files.RANK,
) -> bool:
    """Link the units of the host closure at `closure`; whether anything changed.

    Raises `NODE.ACTIVATE` when an engine runs and something would change, and when systemd does not show the
    units of this closure afterwards.
    """
    wanted = {unit.name: unit for unit in sorted((closure / "units").iterdir())}
    present = {link.name: link for link in units.glob(OURS)}
    links = {units / name: target for name, target in wanted.items()}
    links |= {units / WANTS / name: Path("..") / name for name in wanted}
    stale = [present[name] for name in present.keys() - wanted.keys()]
    stale += [link for link in (units / WANTS).glob(OURS) if link.name not in wanted]
    todo = {link: target for link, target in links.items() if not _points(link, target)}
    if todo or stale:
        if (engine := run_files.engine(runs)) is not None:
            stop = "Run: systemctl stop sparkserve-rank, on every node of the group, then try again."
            raise _wrong("no engine on this node", f"process {engine.pid} runs", "the node", stop)
        for link in stale:
            link.unlink()
        for link, target in todo.items():
            link.parent.mkdir(parents=True, exist_ok=True)
            part = link.with_name(f".{link.name}.part")
            part.unlink(missing_ok=True)
            part.symlink_to(target)
            part.replace(link)
        subprocess.run(["sync", "-f", str(units)], check=False)
        systemctl("daemon-reload")
    _verify(list(wanted), closure, systemctl)
    return bool(todo or stale)


def _verify(names: Sequence[str], closure: Path, systemctl: Callable[..., str]) -> None:
    for name in names:
        shown = systemctl("show", "--property=LoadState,NeedDaemonReload,ExecStart", name)
        values = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        good = values.get("LoadState") == "loaded" and values.get("NeedDaemonReload") == "no"
        if not (good and f"{closure}/" in values.get("ExecStart", "")):
            raise _wrong(f"{name} of {closure}", " ".join(shown.split())[:300] or "nothing", "systemd")


def _points(link: Path, target: Path) -> bool:
    return link.is_symlink() and link.readlink() == target


def _wrong(
    expected: str, found: str, where: str, do: str = "Run ./sparkserve up: it activates again."
) -> SparkserveError:
    return SparkserveError("NODE.ACTIVATE", expected=expected, found=found, where=where, do=do)
