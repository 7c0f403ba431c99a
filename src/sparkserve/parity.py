"""Compares nix/lib with the real nixpkgs.lib, on the case table of tests/parity.

The values of the real library are committed with its revision, so the comparison needs no network. With a
copy of the library at hand they are computed again. To write them anew, from a git checkout of the library:

    python -m sparkserve.parity DIR
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkserve import checkout, nix
from sparkserve.errors import SparkserveError

PARALLEL = 2
SECONDS = 60  # a case takes 0.1 s; an endless one ends here and counts as an error of Nix

Cases = dict[str, dict[str, Any]]


def run(library: Path | None) -> tuple[int, list[str]]:
    """The number of comparisons that agree, and one text for each that does not.

    `library` is a folder with nixpkgs.lib (or nixpkgs itself): then the committed values and the plans of all
    fleets are compared with it too. Raises `NIX.EVAL` when the table cannot be evaluated.
    """
    expected = json.loads(_file("expected.json").read_text())["cases"]
    ours = checkout.root() / "nix" / "lib"
    names = json.loads((ours / "names.json").read_text())
    pairs = [
        ("nixpkgs.lib", expected, "nix/lib", evaluate(ours)),
        # A name of ours alone would be a word that modules could not use with the real library.
        ("nixpkgs.lib", names, "nix/lib", _names(ours)),
    ]
    if library is not None:
        real = library_folder(library)
        pairs += [
            (str(real), evaluate(real), "tests/parity/expected.json", expected),
            (str(real), _names(real), "nix/lib/names.json", names),
            (str(real), _plans(real), "nix/lib", _plans(ours)),
        ]
    failures = [text for pair in pairs for text in differences(*pair)]
    return sum(len(cases) for _, cases, _, _ in pairs) - len(failures), failures


def differences(left_name: str, left: dict[str, Any], right_name: str, right: dict[str, Any]) -> list[str]:
    """One text for each key that is missing on a side or has other values."""
    return [
        f"{key}: {left_name} has {_short(left.get(key))}, {right_name} has {_short(right.get(key))}"
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key)
    ]


def evaluate(lib: Path) -> Cases:
    """Every case with the library in folder `lib`: name to {"ok": bool, "value": the value or None}."""
    table = ["--arg", "lib", f"import {lib}", str(_file("cases.nix"))]
    cases: Cases = _json([*table, "-A", "together"])
    alone = _json(
        [
            *["--arg", "lib", f"import {lib}", "--arg", "table", f"import {_file('cases.nix')}"],
            *["-E", "{ lib, table }: builtins.attrNames (table { inherit lib; }).alone"],
        ]
    )

    def one(name: str) -> tuple[str, dict[str, Any]]:
        done = _instantiate([*table, "-A", f"alone.{name}"])
        ok = done.returncode == 0
        return name, {"ok": ok, "value": json.loads(done.stdout) if ok else None}

    with ThreadPoolExecutor(PARALLEL) as pool:
        cases.update(pool.map(one, alone))
    return cases


def write(library: Path) -> str:
    """Write expected.json and nix/lib/names.json from a git checkout of the library; return its revision."""
    real = library_folder(library)
    git = ["git", "-C", str(library), "rev-parse", "HEAD"]
    revision = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    source = {"repository": "nix-community/nixpkgs.lib", "revision": revision}
    _dump(_file("expected.json"), {"source": source, "cases": evaluate(real)})
    _dump(checkout.root() / "nix" / "lib" / "names.json", _names(real))
    return revision


def library_folder(folder: Path) -> Path:
    """The folder to import: `folder` or its lib/. Raises `CHECK.NAME` when neither is nixpkgs.lib."""
    for candidate in (folder / "lib", folder):
        if (candidate / "modules.nix").exists() and (candidate / "default.nix").exists():
            return candidate.resolve()
    raise SparkserveError(
        "CHECK.NAME",
        expected="a folder with nixpkgs.lib",
        found="no lib/modules.nix",
        where=str(folder),
        do="Set NIXPKGS_LIB to a checkout of nixpkgs or of nix-community/nixpkgs.lib, or unset it.",
    )


def _file(name: str) -> Path:
    return checkout.root() / "tests" / "parity" / name


def _plans(lib: Path) -> dict[str, Any]:
    root = checkout.root()
    folders = f"hosts = {root}/hosts; modules = {root}/modules;"
    plans: dict[str, Any] = _json(["-E", f"import {root}/nix/fleet.nix {{ lib = import {lib}; {folders} }}"])
    return plans


def _names(lib: Path) -> dict[str, Any]:
    names = "{ lib = attrNames lib; types = attrNames lib.types; ints = attrNames lib.types.ints; }"
    found: dict[str, Any] = _json(["-E", f"let lib = import {lib}; in with builtins; {names}"])
    return found


def _json(arguments: list[str]) -> Any:
    done = _instantiate(arguments)
    if done.returncode != 0:
        raise SparkserveError(
            "NIX.EVAL",
            expected="the case table to be evaluated",
            found=done.stderr.strip()[-2000:],
            where="tests/parity",
            do="A case that Nix cannot catch belongs into tests/parity/alone.nix.",
        )
    return json.loads(done.stdout)


def _instantiate(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    argv = ["nix-instantiate", "--eval", "--strict", "--json", *arguments]
    try:
        return subprocess.run(argv, env=nix.environment(), capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 1, "", f"no end after {SECONDS} s")


def _dump(path: Path, value: dict[str, Any]) -> None:
    # A line per case, so that a change shows as the cases it changes.
    def lines(value: Any, depth: int) -> str:
        if not isinstance(value, dict) or depth == 0:
            return json.dumps(value, sort_keys=True, ensure_ascii=False)
        return (
            "{\n"
            + ",\n".join(f"{json.dumps(k)}: {lines(v, depth - 1)}" for k, v in sorted(value.items()))
            + "\n}"
        )

    path.write_text(lines(value, 2) + "\n")


def _short(case: Any) -> str:
    return json.dumps(case, ensure_ascii=False)[:200]


if __name__ == "__main__":
    sys.stdout.write(write(Path(sys.argv[1])) + "\n")
