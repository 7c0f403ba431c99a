"""Store paths are computed here as Nix computes them, and pins are damaged or missing when Nix says so."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from sparkserve import nix
from sparkserve.errors import SparkserveError
from sparkserve.pins import store
from sparkserve.pins.model import clean_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AB = "ab" * 32
FEDCBA = "fedcba9876543210" * 4


@pytest.mark.parametrize(
    ("name", "sha256", "recursive", "path"),
    [
        # What `nix-store --print-fixed-path [--recursive] sha256 HASH NAME` of Nix 2.8 prints.
        ("a.txt", AB, False, "/nix/store/kb0s8n2i75mnjpq5y9v7g3jwy5q7sh5z-a.txt"),
        ("a.txt", AB, True, "/nix/store/lkaljwx06yyygm3if224g8n5pkrpdn4h-a.txt"),
        (
            "libattr1_1-2.5.1-4_amd64.deb",
            FEDCBA,
            False,
            "/nix/store/447y0lvva6i2qbgacbkxrr8gd501a2wa-libattr1_1-2.5.1-4_amd64.deb",
        ),
        ("busybox", FEDCBA, True, "/nix/store/syrh6j8bgjf7k7phqf10sz0f1iaz8y45-busybox"),
    ],
)
def test_a_path_is_the_one_that_nix_prints(name: str, sha256: str, recursive: bool, path: str) -> None:
    assert store.fixed_path(name, sha256, recursive=recursive) == path


@pytest.mark.parametrize(
    ("file", "clean"),
    [
        ("libattr1_1%3a2.5.1-4_amd64.deb", "libattr1_1-2.5.1-4_amd64.deb"),
        ("libssl3_3.0.20-1~deb12u2_amd64.deb", "libssl3_3.0.20-1-deb12u2_amd64.deb"),
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",) * 2,
        ("a b/c.whl", "a-b-c.whl"),
        (".hidden.whl", "hidden.whl"),
    ],
)
def test_a_name_has_only_what_nix_allows(file: str, clean: str) -> None:
    assert clean_name(file) == clean


Answer = tuple[int, str, str]


@pytest.fixture
def nix_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[list[str]]]:
    """Let the next commands answer (exit code, stdout, stderr); returns the list of their argument lists."""
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))

    def answer(with_: Answer) -> list[list[str]]:
        calls: list[list[str]] = []

        def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            calls.append(list(argv))
            return subprocess.CompletedProcess(argv, *with_)

        def run_nix(argv: list[str]) -> tuple[str, str, int]:
            done = run(argv)
            return done.stdout, done.stderr, done.returncode

        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(nix, "run", run_nix)
        return calls

    return answer


def test_nix_is_asked_once_for_all_paths(nix_says: Callable[[Answer], list[list[str]]]) -> None:
    calls = nix_says((0, "/nix/store/b\n", "warning: the group does not exist\n"))
    assert store.missing(["/nix/store/b", "/nix/store/a", "/nix/store/b"]) == {"/nix/store/b"}
    assert calls == [["nix-store", "--check-validity", "--print-invalid", "/nix/store/a", "/nix/store/b"]]


def test_a_check_that_did_not_run_is_not_a_good_one(nix_says: Callable[[Answer], list[list[str]]]) -> None:
    nix_says((1, "", "error: cannot open the database"))
    with pytest.raises(SparkserveError, match="cannot open the database"):
        store.damaged(["/nix/store/a"])


def test_a_damaged_path_is_named(nix_says: Callable[[Answer], list[list[str]]]) -> None:
    nix_says((1, "", "path '/nix/store/b' was modified! expected hash 'sha256:1', got 'sha256:2'"))
    assert store.damaged(["/nix/store/a", "/nix/store/b"]) == {"/nix/store/b"}


@pytest.mark.parametrize(
    ("stderr", "id"),
    [
        ("error: writing to file: No space left on device", "HOST.DISK"),
        ("error: database or disk is full", "HOST.DISK"),
        ("error: opening lock file '/nix/var/nix/db/big-lock': Permission denied", "HOST.ROOT"),
        ("error: something else", "NIX.BUILD"),
    ],
)
def test_what_nix_complains_of_has_its_own_error(
    nix_says: Callable[[Answer], list[list[str]]], tmp_path: Path, stderr: str, id: str
) -> None:
    nix_says((1, "", stderr))
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SparkserveError) as caught:
        store.add([file])
    assert caught.value.id == id


def test_a_file_loses_its_execute_bit_before_it_is_added(
    nix_says: Callable[[Answer], list[list[str]]], tmp_path: Path
) -> None:
    nix_says((0, "/nix/store/x\n", ""))
    file = tmp_path / "file"
    file.touch(mode=0o755)
    store.add([file])
    assert file.stat().st_mode & 0o777 == 0o644


def test_roots_are_links_and_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "GC_ROOTS", tmp_path / "roots")
    store.keep(["/nix/store/aaa-x"])
    first = (tmp_path / "roots/aaa-x").lstat().st_ino
    store.keep(["/nix/store/aaa-x", "/nix/store/bbb-y"])
    assert (tmp_path / "roots/aaa-x").lstat().st_ino == first
    links = {link.name: str(link.readlink()) for link in (tmp_path / "roots").iterdir()}
    assert links == {"aaa-x": "/nix/store/aaa-x", "bbb-y": "/nix/store/bbb-y"}
