"""The plan's reader takes what Nix renders, and names what is wrong with anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sparkserve import plan
from sparkserve.errors import SparkserveError

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/local-single/spark-0.json"
MISSING = object()


def changed(path: str, value: Any) -> dict[str, Any]:
    """The golden plan with the field at the dotted `path` replaced, added or (MISSING) taken out."""
    whole: dict[str, Any] = json.loads(GOLDEN.read_text())
    *sections, field = path.split(".")
    part = whole
    for section in sections:
        part = part[section]
    if value is MISSING:
        del part[field]
    else:
        part[field] = value
    return whole


def test_reads_the_golden_plan_and_writes_it_back() -> None:
    read = plan.load(GOLDEN)
    assert read.serving.port == 8888
    assert json.loads(read.model_dump_json()) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(
    ("path", "value", "expected", "found"),
    [
        ("serving.port", "8888", "serving.port: a valid integer", '"8888"'),
        ("serving.port", 0, "serving.port: greater than or equal to 1", "0"),
        ("serving.port", True, "serving.port: a valid integer", "true"),
        ("schema", "sparkserve.plan/2", "schema: 'sparkserve.plan/1'", '"sparkserve.plan/2"'),
        ("gates", MISSING, "the field gates", "a plan without it"),
        (
            "gates",
            ["smoke", "A b"],
            "gates.1: String should match pattern '^[a-z][a-z0-9-]{0,30}$'",
            '"A b"',
        ),
        ("engine.extra", 1, "only fields of this version of the plan", "engine.extra"),
        ("engine.devices", ["dev/null"], "engine.devices.0: String should match pattern '^/'", '"dev/null"'),
        ("engine.env", {"A": 1}, "engine.env.A: a valid string", "1"),
        ("node.rank", 1, "node to be one of fleet.nodes, with the same rank", "other values"),
        (
            "host.files",
            {"etc/a": {"mode": "0644", "text": ""}},
            r"host.files.etc/a.[key]: String should match pattern "
            r"'^/etc(/\.?[A-Za-z0-9_@\\:-][A-Za-z0-9_.@\\:+-]*)+$'",
            '"etc/a"',
        ),
        (
            "host.files",
            {"/etc/a": {"mode": "644", "text": ""}},
            "host.files./etc/a.mode: String should match pattern '^0[0-7]{3}$'",
            '"644"',
        ),
        ("fleet.nodes", [], "fleet.nodes: Tuple should have at least 1 item after validation, not 0", "[]"),
    ],
)
def test_names_the_wrong_field(path: str, value: Any, expected: str, found: str) -> None:
    with pytest.raises(SparkserveError) as caught:
        plan.parse(changed(path, value))
    assert caught.value.id == "PLAN.SCHEMA"
    assert caught.value.expected == expected
    assert caught.value.found.startswith(found)


def test_refuses_nodes_out_of_order() -> None:
    nodes = [
        {"name": "spark-1", "rank": 1, "address": "10.0.0.2"},
        {"name": "spark-0", "rank": 0, "address": "10.0.0.1"},
    ]
    with pytest.raises(SparkserveError, match=r"ranks 0, 1, \.\.\. in order"):
        plan.parse(changed("fleet.nodes", nodes))


@pytest.mark.parametrize("text", [None, "", "{", "\udcff"])
def test_says_which_file_is_no_plan(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "plan.json"
    if text is not None:
        file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SparkserveError) as caught:
        plan.load(file)
    assert (caught.value.id, caught.value.where) == ("PLAN.SCHEMA", str(file))


def test_a_file_may_be_of_another_version_and_what_was_evaluated_may_not(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(changed("host.kernel_args", ["$(id)"])))
    with pytest.raises(SparkserveError, match="of another one, build it again"):
        plan.load(file)
    with pytest.raises(SparkserveError, match="Change the option"):
        plan.parse(json.loads(file.read_text()))


def test_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        plan.load(GOLDEN).node.rank = 1


@pytest.mark.parametrize(
    "golden", sorted((ROOT / "tests/golden").glob("*/*.json")), ids=lambda path: path.stem
)
def test_golden_plans_fit_the_committed_schema(golden: Path) -> None:
    schema = json.loads((ROOT / "docs/plan.schema.json").read_text())
    plan_ = json.loads(golden.read_text())
    jsonschema.validate(plan_, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plan_, "schema": "sparkserve.plan/0"}, schema)


def test_committed_schema_is_the_exported_one() -> None:
    # Another one is wanted: ./sparkserve fleet schema > docs/plan.schema.json
    assert json.loads((ROOT / "docs/plan.schema.json").read_text()) == plan.schema()
