"""Runs Nix with the project's settings and turns its errors into ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections import deque
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from sparkserve import checkout, disk
from sparkserve.errors import EXIT_CODES, SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TAIL_LINES = 60
ENDS_S = 10.0  # after SIGTERM, which an evaluation reads when it is done
RACE_TRIES = 10  # half a second apart

# Nix code of ours throws "ID | expected | found | where | do"; see nix/throw.nix.
# No command of ours takes that option.
_SHOW_TRACE = re.compile(r"^\(.*use '--show-trace'.*\)\n?", re.MULTILINE)
_OURS = re.compile(
    r"(?:^|error:|> )\s*([A-Z]+\.[A-Z]+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^\n]*)", re.MULTILINE
)
_RACE = re.compile(r"error: (SQLite database '.*' is busy|creating symlink .*: File exists)")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def environment(safe_directory: str | None = None) -> dict[str, str]:
    """The process environment with the project's Nix settings and git's safe.directory.

    `safe_directory` is the checkout unless given.

    The machine's nix.conf is never edited. Nix keeps no evaluations: of two that write its cache at once, one
    fails with an attribute "unexpectedly missing", and an evaluation takes 60 ms. `sudo` in a user's clone
    makes git refuse the folder, and Nix 2.8 then shows git's usage text as its error: hence safe.directory by
    environment.
    """
    settings = files("sparkserve").joinpath("nix.conf").read_text()
    user = os.environ.get("NIX_CONFIG", "")
    given = os.environ.get("GIT_CONFIG_COUNT", "")
    count = int(given) if re.fullmatch("[0-9]{1,5}", given) else 0
    return {
        **os.environ,
        "NIX_CONFIG": f"{user}\n{settings}",
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": "safe.directory",
        f"GIT_CONFIG_VALUE_{count}": safe_directory or str(checkout.root()),
    }


def eval_json(attribute: str, apply: str | None = None, commit: str = "") -> Any:
    """Evaluate a flake attribute (for instance `lib.fleets.local-single.plans`) to a Python value.

    It is that of the checkout as it is, or of one of its commits.

    As for `nix build`, `packages.<system>` and `legacyPackages.<system>` may be left out in front. `apply` is
    a Nix function that the value goes through. Raises the error that our Nix code threw, else `NIX.EVAL`.
    """
    argv = ["nix", "eval", "--json", *(["--apply", apply] if apply else [])]
    out, err, code = run([*argv, f"{flake(commit)}#{attribute}"])
    if code != 0:
        raise error(err, "NIX.EVAL", attribute)
    return json.loads(out)


def build(
    attributes: Sequence[str], *, out_link: Path | None = None, on_line: Callable[[str], None] | None = None
) -> list[Path]:
    """Build flake attributes, spelled as for `nix build`, and return their store paths in order.

    `out_link` registers a GC root. `on_line` receives each line of Nix's progress. Raises the error that our
    Nix code threw, `HOST.DISK` on a full disk, else `NIX.BUILD`: with the end of the log, or when the
    checkout was edited meanwhile.
    """
    link = ["--no-link"] if out_link is None else ["--out-link", str(out_link)]
    argv = ["nix", "build", "--json", "--print-build-logs", *link]
    argv += [f"{flake()}#{name}" for name in attributes]
    out, err, code = run(argv, on_line)
    if code != 0:
        raise error(err, "NIX.BUILD", " ".join(attributes))
    # What it prints is in an order of its own (2.8), so which is which takes another evaluation.
    built = {each["outputs"]["out"] for each in json.loads(out)}
    paths = [eval_json(f"{name}.outPath") for name in attributes]
    if not built.issuperset(paths):
        raise SparkserveError(
            "NIX.BUILD",
            expected="the files of the checkout to stay as they are during the build",
            found="other ones at its end",
            where=" ".join(attributes),
            do="Do the same again: what has not changed is built already.",
        )
    return [Path(path) for path in paths]


def keep(path: Path, link: Path) -> None:
    """Make `link` a GC root for the store path `path`. Raises `NIX.BUILD`."""
    argv = ["nix-store", "--realise", str(path), "--add-root", str(link), "--indirect"]
    _, err, code = run(argv)
    if code != 0:
        raise error(err, "NIX.BUILD", str(link))


class Registered(NamedTuple):
    """What Nix's database says of a path: the hex SHA-256 and bytes of its NAR, and what it refers to."""

    sha256: str
    size: int
    references: tuple[str, ...]


def closure(paths: Sequence[Path]) -> dict[str, Registered]:
    """The paths of the closures of `paths`, each after what it refers to. Raises `NIX.BUILD`."""
    all_paths = _output(["nix-store", "--query", "--requisites", *map(str, paths)]).split()
    found = parse_db(_output(["nix-store", "--dump-db", *all_paths]))
    others = {path: set(each.references) - {path} for path, each in found.items()}
    return {path: found[path] for path in TopologicalSorter(others).static_order()}


def parse_db(text: str) -> dict[str, Registered]:
    """What `nix-store --dump-db` prints, by path. Pure."""
    # A record: path, hash, size, deriver, number of references, these; each on a line of its own.
    lines = iter(text.splitlines())
    found = {}
    for path in lines:
        sha256, size, _, count = (next(lines) for _ in range(4))
        found[path] = Registered(sha256, int(size), tuple(next(lines) for _ in range(int(count))))
    return found


def dump(path: str) -> bytes:
    """The NAR of a store path. Raises `NIX.BUILD`."""
    done = subprocess.run(["nix-store", "--dump", path], capture_output=True, env=environment())
    if done.returncode != 0:
        raise error(done.stderr.decode(errors="replace"), "NIX.BUILD", path)
    return done.stdout


def add(path: str, name: str) -> str:
    """Add the contents of `path`, which refer to nothing, under `name`; the new path. Raises `NIX.BUILD`."""
    return _output(["nix", "store", "add-path", "--name", name, path]).strip()


def take(paths: Sequence[str], cache: Path) -> None:
    """Take `paths` from the binary cache in the folder `cache`, which we wrote. Raises `NIX.BUILD`.

    What they refer to is in the store. Nix compares their contents with the hashes in the cache.
    """
    source = f"file://{quote(str(cache))}"
    _output(["nix", "copy", "--no-recursive", "--no-check-sigs", "--from", source, *paths])


def _output(argv: list[str]) -> str:
    out, err, code = run(argv)
    if code != 0:
        raise error(err, "NIX.BUILD", " ".join(argv[:3]))
    return out


def flake(commit: str = "") -> str:
    """The checkout's URL for Nix, as it is or at a commit.

    Without `shallow` a `git clone --depth 1` is refused, and without `allRefs` a commit of another branch.
    """
    at = f"&allRefs=1&rev={commit}" if commit else ""
    return f"git+file://{quote(str(checkout.root()))}?shallow=1{at}"


def run(argv: Sequence[str], on_line: Callable[[str], None] | None = None) -> tuple[str, str, int]:
    """Stdout, the end of stderr, and the exit code of a Nix program, which may run twice.

    Nix waits for its database, but not where it opens or closes it, and not for a store that another process
    is just setting up: of two at one moment, one ends with `_RACE` (seen with 2.8). What we call does no harm
    when it is called again.
    """
    for _ in range(RACE_TRIES):
        out, err, code = _once(argv, on_line)
        if code == 0 or not _RACE.search(err):
            break
        time.sleep(0.5)
    return out, err, code


def _once(argv: Sequence[str], on_line: Callable[[str], None] | None) -> tuple[str, str, int]:
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    # stdout in a file: a large value would fill a pipe that nobody reads while stderr is read.
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            argv, stdout=out, stderr=subprocess.PIPE, text=True, errors="replace", env=environment()
        )
        assert process.stderr is not None  # noqa: S101 - for mypy
        try:
            for line in process.stderr:
                text = _ANSI.sub("", line.rstrip())
                tail.append(text)
                if on_line is not None and text:
                    on_line(text)
            code = process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise
        out.seek(0)
        return out.read(), "\n".join(tail), code


def error(stderr: str, fallback: str, where: str) -> SparkserveError:
    """The error that Nix's output tells of: what our Nix code threw, else `fallback` with its last lines."""
    ours = _OURS.search(stderr)
    if ours and ours[1] in EXIT_CODES:
        id, expected, found, place, do = (part.strip() for part in ours.groups())
        return SparkserveError(id, expected=expected, found=found, where=place, do=do)
    if "/PIN.MISSING-" in stderr:
        # The pin under all others has no builder that could print a sentence; see nix/stage0.nix.
        return SparkserveError(
            "PIN.MISSING",
            expected="the pin of busybox, the first builder, in the store",
            found="nothing",
            where="/nix/store",
            do="Run ./sparkserve pins fetch.",
        )
    if disk.told(stderr):
        return disk.full("/nix/store")
    return SparkserveError(
        fallback,
        expected="Nix to finish",
        found=f"an error; its last lines:\n{_SHOW_TRACE.sub('', stderr)}\n",
        where=where,
        do="The lines above name the failing step; ./sparkserve nix log DRV shows the whole log.",
    )
