"""Everything a check knows about a host comes through here: files, names in folders, links, commands.

`Live` reads a host, `Recorded` a bundle (`doctor collect`). Both note what was asked for. That is the
evidence of a verdict, and makes a bundle: what all checks asked for is what all checks need.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import subprocess
from typing import TYPE_CHECKING, Any

from sparkserve.doctor import guard
from sparkserve.doctor.check import Unknown
from sparkserve.doctor.redact import redact
from sparkserve.doctor.words import kept, planned

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = "sparkserve.facts/1"
MOST = 1 << 20  # bytes of one answer, and of the end of a log, which may be endless
_PIECE = 64 << 10
SECONDS = 20  # nvidia-smi blocks for minutes when memory is out (mia 7.4)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Facts:
    """What was asked for, in the form of a bundle. Subclasses answer `_file` and `_command`."""

    live = False
    planned: frozenset[str] = frozenset()  # the words that may stay in an engine's command line

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        self.commands: dict[str, dict[str, Any]] = {}
        self.touched: list[str] = []

    def text(self, path: str) -> str:
        """The text of a file. Raises `Unknown` when there is none or it cannot be read."""
        return str(self._ask(path, "text"))

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted. Raises `Unknown` when it is not there."""
        return [str(name) for name in self._ask(path, "names")]

    def link(self, path: str) -> str:
        """What a symbolic link says. Raises `Unknown` when it is none."""
        return str(self._ask(path, "link"))

    def stat(self, path: str) -> dict[str, Any]:
        """`mode` as octal text, `size` in bytes. Raises `Unknown` when it is not there."""
        return dict(self._ask(path, "stat"))

    def exists(self, path: str) -> bool:
        """Whether something is there. Raises `Unknown` when that cannot be told."""
        entry = self._entry(path, "stat")
        if "stat" not in entry and "absent" not in entry:
            raise Unknown(entry["why"])
        return "stat" in entry

    def run(self, *argv: str) -> str:
        """What a command of the closed list printed. Raises `Unknown` when it is missing, failed or hung."""
        code, out = self.answer(*argv)
        if code != 0:
            raise Unknown(
                f"`{' '.join(argv)}` ended with {code}: {' '.join(out.split())[:160] or 'no output'}"
            )
        return out

    def answer(self, *argv: str) -> tuple[int, str]:
        """Exit code and output of a command, for those whose code is an answer."""
        key = " ".join(argv)
        self.touched.append(key)
        if key not in self.commands:
            self.commands[key] = self._command(argv)
        entry = self.commands[key]
        if "why" in entry:
            raise Unknown(str(entry["why"]))
        return int(entry["code"]), str(entry["out"])

    def evidence(self, key: str) -> Any:
        """What was found for an entry of `touched`, short enough to show."""
        entry = self.commands.get(key) or self.files.get(key, {})
        return {name: value[:400] if isinstance(value, str) else value for name, value in entry.items()}

    def _ask(self, path: str, what: str) -> Any:
        entry = self._entry(path, what)
        if what not in entry:
            raise Unknown(entry.get("absent") or entry["why"])
        return entry[what]

    def _entry(self, path: str, what: str) -> dict[str, Any]:
        self.touched.append(path)
        entry = self.files.setdefault(path, {})
        if not ({what, "absent", "why"} & entry.keys()):
            entry.update(self._file(path, what))
        return entry

    def _file(self, path: str, what: str) -> dict[str, Any]:
        raise NotImplementedError

    def _command(self, argv: tuple[str, ...]) -> dict[str, Any]:
        raise NotImplementedError


class Live(Facts):
    """The host whose file system begins at `root`. `live` allows the commands that touch the network."""

    def __init__(self, root: Path, *, live: bool, planned: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.root = os.path.realpath(root).rstrip("/")
        self.planned = planned
        self.live = live
        self._hung: set[str] = set()

    def _file(self, path: str, what: str) -> dict[str, Any]:
        if what == "text":
            guard.check_text(path)
        real = self.root + path
        try:
            if what == "names":
                return {"names": sorted(os.listdir(real))}  # noqa: PTH208 - a name may be no valid text
            if what == "link":
                return {"link": os.readlink(real)}  # noqa: PTH115
            if what == "stat":
                seen = os.stat(real)  # noqa: PTH116
                return {"stat": {"mode": f"{stat.S_IMODE(seen.st_mode):04o}", "size": seen.st_size}}
            # Not where a link in the list leads: a link in /etc/modprobe.d may lead to /etc/shadow.
            real = os.path.realpath(real)
            guard.check_led(real.removeprefix(self.root) if real.startswith(self.root) else real)
            text = _read(real)
            if re.fullmatch(r"/proc/\d+/cmdline", path):
                return {"text": kept(text, self.planned)}
            return {"text": redact(text)}
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return {"absent": f"{path} is not there"}
        except (OSError, ValueError) as error:
            return {"why": f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"}

    def _command(self, argv: tuple[str, ...]) -> dict[str, Any]:
        guard.check_command(argv, live=self.live)
        name = argv[0]
        if argv == ("uname", "-m"):  # needs no program, and what machine this is decides half of the checks
            return {"code": 0, "out": f"{os.uname().machine}\n"}
        if self.root:
            return {"why": f"`{name}` is not run for a recorded root"}
        if name in self._hung:
            return {"why": f"`{name}` hung before"}
        environment = {
            "PATH": _PATH,
            "LC_ALL": "C",
            "HOME": os.environ.get("HOME", "/"),
            "GIT_OPTIONAL_LOCKS": "0",
        }
        pipes: Mapping[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        try:
            with subprocess.Popen(argv, **pipes, stderr=subprocess.STDOUT, env=environment) as process:
                guard.child(process.pid)
                try:
                    out, _ = process.communicate(timeout=SECONDS)
                except BaseException as error:
                    process.kill()
                    if not isinstance(error, subprocess.TimeoutExpired):
                        raise
                    self._hung.add(name)
                    return {"why": f"`{' '.join(argv)}` gave no answer in {SECONDS} s"}
        except FileNotFoundError:
            return {"why": f"`{name}` is not installed"}
        except OSError as error:
            return {"why": f"`{name}` cannot be run: {error.strerror}"}
        return {"code": process.returncode, "out": redact(out[-MOST:].decode(errors="replace"))}


def _read(path: str) -> str:
    # Not a device, not a FIFO: opening one can act, or wait for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise ValueError("not a file")
        # In small pieces: /proc/sys answers a read of some megabytes with ENOMEM.
        pieces = iter(lambda: file.read(_PIECE), b"")
        first = b"".join(itertools.islice(pieces, MOST // _PIECE))
        if seen.st_size <= MOST:
            return first.decode(errors="replace")
        # A log: how it began, and what came last.
        file.seek(-MOST, os.SEEK_END)
        return (first + b"\n" + b"".join(itertools.islice(pieces, MOST // _PIECE))).decode(errors="replace")


class Recorded(Facts):
    """A host as a bundle has it.

    A file is its text, or `{"link": ...}`, `{"mode": ..., "size": ...}`, or null for one that is there and
    not recorded. A name with a slash at its end is a folder; other folders follow from names.
    """

    def __init__(self, bundle: Mapping[str, Any], *, live: bool) -> None:
        super().__init__()
        self.live = live
        self.planned = planned(bundle.get("plan"))
        self._files: Mapping[str, Any] = bundle.get("files", {})
        self._commands: Mapping[str, Any] = bundle.get("commands", {})
        self._folders: dict[str, set[str]] = {}
        for path in self._files:
            parent, _, name = path.rstrip("/").rpartition("/")
            while name and name not in self._folders.setdefault(parent or "/", set()):
                self._folders[parent or "/"].add(name)
                parent, _, name = parent.rpartition("/")
            if path.endswith("/"):
                self._folders.setdefault(path.rstrip("/"), set())

    def _file(self, path: str, what: str) -> dict[str, Any]:
        if what == "text":
            guard.check_text(path)
        entry = self._files.get(path)
        shown: dict[str, Any] = {"text": entry} if isinstance(entry, str) else dict(entry or {})
        if path in self._folders:
            shown = {"mode": "0755", "size": 0, "names": sorted(self._folders[path])} | shown
        elif path not in self._files:
            return {"absent": f"{path} is not there"}
        if "why" in shown:
            return {"why": str(shown["why"])}
        size = len(shown.get("text", "")) or 1
        shown["stat"] = {"mode": str(shown.get("mode", "0644")), "size": int(shown.get("size", size))}
        return {what: shown[what]} if what in shown else {"why": f"{path}: {what} is not in the bundle"}

    def _command(self, argv: tuple[str, ...]) -> dict[str, Any]:
        guard.check_command(argv, live=self.live)
        entry = self._commands.get(" ".join(argv))
        if entry is None:
            return {"why": f"`{' '.join(argv)}` is not in the bundle"}
        return {"code": 0, "out": entry} if isinstance(entry, str) else dict(entry)


def bundle(facts: Facts) -> dict[str, Any]:
    """What `facts` was asked for, in the form that `Recorded` takes."""
    files: dict[str, Any] = {}
    for path, entry in facts.files.items():
        if "names" in entry:  # processes come and go: only those that were looked at
            names = entry["names"] if path != "/proc" else []
            files = {f"{path.rstrip('/')}/{name}": None for name in names} | files
            files[path.rstrip("/") + "/"] = None
        elif "why" in entry:
            files[path] = {"why": entry["why"]}
        elif "absent" not in entry:
            parts = {key: entry[key] for key in ("text", "link") if key in entry} | entry.get("stat", {})
            files[path] = parts["text"] if parts.keys() == {"text"} else parts or None
    return {"schema": SCHEMA, "files": dict(sorted(files.items())), "commands": facts.commands}
