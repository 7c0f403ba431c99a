"""`sparkserve bench report`, as people and scripts call it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import report_values as values

from sparkserve.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["bench", "report", *map(str, arguments)])
    assert isinstance(caught.value.code, int)
    out, err = capsys.readouterr()
    return caught.value.code, out, err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "before.json"
    made.write_text(values.run(1, cases=("prose",), lengths=(4096,)).model_dump_json(by_alias=True))
    return made


def test_prints_markdown(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, _ = run(capsys, file, "--reference", "owen-r6-tp4")
    assert code == 0
    assert out.startswith("# bench decode: tp4-switched\n")
    assert "| owen r6 TP4, tok/s (published) |" in out


@pytest.mark.parametrize(("name", "start"), [("r.html", "<!DOCTYPE html>"), ("r.md", "# "), ("r.json", "{")])
def test_writes_by_the_name(capsys: pytest.CaptureFixture[str], file: Path, name: str, start: str) -> None:
    output = file.with_name(name)
    code, out, err = run(capsys, file, "--output", output)
    assert (code, out) == (0, "")
    assert str(output) in err
    assert output.read_text().startswith(start)


def test_a_result_is_not_replaced_by_its_report(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    measured = file.read_text()
    code, _, err = run(capsys, file, "--output", file)
    assert (code, "that it would replace" in err) == (2, True)
    assert file.read_text() == measured


def test_one_file_is_one_arm(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    link = file.with_name("link.json")
    link.symlink_to(file)
    code, _, err = run(capsys, file, link)
    assert (code, "would be two arms" in err) == (2, True)


def test_json(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    other = file.parent / "other" / file.name
    other.parent.mkdir()
    other.write_bytes(file.read_bytes())
    code, out, _ = run(capsys, file, other, "--reference", "all", "--json")
    assert code == 0
    found = json.loads(out)
    assert [arm["name"] for arm in found["arms"]] == ["before 1", "before 2"]
    assert "knapcio-v2.4" in found["references"]


def test_refusals(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, _, err = run(capsys, file, "--output", file.with_suffix(".pdf"))
    assert code == 2
    assert ".html, .md, .json" in err
    code, _, err = run(capsys, file, "--reference", "nobody")
    assert code == 80
    assert "owen-r6-tp3" in err
    code, _, err = run(capsys, file.with_name("none.json"))
    assert code == 2
    file.write_text("{}")
    code, out, _ = run(capsys, file, "--json")
    assert code == 80
    assert json.loads(out)["error"] == "BENCH.RESULT"


def test_output_that_cannot_be_written(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, _, err = run(capsys, file, "--output", file.parent / "none" / "r.html")
    assert code != 0
    assert "Traceback" not in err
    assert "none" in err
