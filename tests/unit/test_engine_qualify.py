"""SGLang compared with the record: what is said of every difference. A script stands in for bubblewrap."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from engine_values import closure

from sparkserve.adapters import fingerprint, registry
from sparkserve.engine import qualify
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.engine.closure import Closure

# The build sandbox has no /bin/sh.
SHELL = shutil.which("sh")
HOOKED = "sglang.srt.distributed.parallel_state.GroupCoordinator.all_reduce"


def _root(folder: Path, said: str, code: int = 0) -> Closure:
    (folder / "said").write_text(said)
    bwrap = folder / "bwrap"
    bwrap.write_text(f"#!{SHELL}\ncat {folder}/said\necho no such thing >&2\nexit {code}\n")
    bwrap.chmod(0o755)
    return closure().model_copy(update={"bwrap": str(bwrap)})


def _said(**changes: dict[str, str]) -> str:
    rows = {name: {"sha256": each} for name, each in fingerprint.recorded().items()}
    return json.dumps({"sglang": "0.5.23", "targets": {**rows, **changes}})


def _states(found: qualify.Found) -> dict[str, Any]:
    return {each.target: each.state for each in found.wrong()}


def test_same_as_recorded(tmp_path: Path) -> None:
    found = qualify.qualify(_root(tmp_path, _said()))
    assert found.wrong() == []
    assert found.sglang == "0.5.23"
    users = {each.target: each.users for each in found.targets}
    assert users == fingerprint.targets(registry.declarations())


def test_every_difference_is_named(tmp_path: Path) -> None:
    said = _said(
        **{HOOKED: {"sha256": "0"}, fingerprint.MEETING: {"error": "gone"}, "sglang.new": {"sha256": "1"}}
    )
    found = qualify.qualify(_root(tmp_path, said))
    assert _states(found) == {
        HOOKED: "has changed",
        fingerprint.MEETING: "does not resolve (gone)",
        "sglang.new": "is not recorded",
    }
    assert HOOKED in qualify.drifted(found.wrong()).found


def test_no_targets_prove_nothing(tmp_path: Path) -> None:
    rows = {name: {"sha256": fingerprint.recorded()[name]} for name in fingerprint.PLUGIN}
    with pytest.raises(SparkserveError) as caught:
        qualify.qualify(_root(tmp_path, json.dumps({"sglang": "0.5.23", "targets": rows})))
    assert caught.value.id == "ADAPTER.DRIFT"


def test_sglang_that_does_not_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(SparkserveError) as caught:
        qualify.qualify(_root(tmp_path, "", code=1))
    assert caught.value.id == "ENGINE.START"
    assert "no such thing" in caught.value.found


def test_record_is_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "fingerprints.json"
    qualify.record(qualify.qualify(_root(tmp_path, _said())), file)
    assert file.read_text() == fingerprint.FILE.read_text()
    broken = qualify.qualify(_root(tmp_path, _said(**{HOOKED: {"error": "gone"}})))
    with pytest.raises(SparkserveError):
        qualify.record(broken, file)
