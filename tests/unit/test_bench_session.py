"""Runs: kept after every sample, whatever ends them, and gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest
import scripted
from scripted import Script

from sparkserve.bench import arms, capacity, results, session
from sparkserve.bench.node import Facts
from sparkserve.bench.purity import Limits
from sparkserve.bench.results import Result
from sparkserve.bench.settings import Settings
from sparkserve.cli import measuring
from sparkserve.cli.main import main
from sparkserve.errors import SparkserveError
from sparkserve.gates.evidence import Subject
from sparkserve.gates.subject import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.bench.run import Progress
    from sparkserve.bench.watch import Source

LIMITS = Limits(gap_s=0.0, idle_s=5.0)
SHORT = Settings(cases=("prose", "code"), streams=(1, 2), tokens=8, min=3, max=3)
SRC = Path(__file__).parents[2] / "src"


class Lab:
    """A place with an engine that can be started again: each start is another boot."""

    def __init__(self, endpoint: str, source: Source | None = None) -> None:
        self._endpoint = endpoint
        self._source = source
        self.starts = 1

    def target(self) -> Target:
        subject = Subject(endpoint=self._endpoint, model="scripted", fleet_id="f" * 64, boot=str(self.starts))
        return Target(subject, None)

    def source(self, target: Target) -> Source | None:
        return self._source

    def restart(self) -> None:
        self.starts += 1


class Falling:
    """A node whose memory falls from 50 GiB to 0.1 when `low` is set."""

    names = ("spark-0",)

    def __init__(self) -> None:
        self.low = threading.Event()
        self._ended = threading.Event()

    def follow(self, name: str) -> Iterator[Facts]:
        while not self._ended.is_set():
            yield _facts(0.1 if self.low.is_set() else 50.0)
            self.low.wait(0.01) if not self.low.is_set() else self._ended.wait(0.01)

    def close(self) -> None:
        self._ended.set()


def _facts(gib: float) -> Facts:
    return Facts(
        available_kib=int(gib * 2**20), total_kib=120 << 20, swap_kib=0, throttled=0, stolen=0, ticks=1
    )


def _samples(result: Result) -> int:
    return sum(len(point.samples) for boot in result.boots for point in boot.points.values())


def test_boots_are_starts_of_the_engine(tmp_path: Path) -> None:
    with scripted.serve(Script(step_ms=1)) as endpoint:
        lab = Lab(endpoint)
        result = session.measure(lab, SHORT, tmp_path / "r.json", boots=3, limits=LIMITS)
    assert [boot.subject.boot for boot in result.boots] == ["1", "2", "3"]
    assert len({boot.id for boot in result.boots}) == 3
    assert results.read(tmp_path / "r.json") == result
    for boot in result.boots:
        assert sorted(boot.points) == ["code-c1", "code-c2", "prose-c1", "prose-c2"]
        assert all(len(point.samples) == 3 for point in boot.points.values())
    first, second = result.boots[:2]
    assert all(len(point.prompts) == 32 for point in first.points.values())
    assert all(first.points[name].prompts == second.points[name].prompts for name in first.points)


def test_a_machine_that_others_use_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = iter([(99.0, 0.0, 0.0)] * 2 + [(0.1, 99.0, 99.0)] * 9)
    monkeypatch.setattr(os, "getloadavg", lambda: next(loads))
    settings = SHORT.model_copy(update={"min": 1, "max": 1})
    with scripted.serve(Script()) as endpoint:
        result = session.measure(Lab(endpoint), settings, tmp_path / "r.json", boots=2, limits=LIMITS)
    first, second = result.boots
    assert len(first.notes) == 1 and "a load of 99.0" in first.notes[0]
    assert second.notes == ()


def test_low_memory_ends_the_run_and_keeps_what_was_measured(tmp_path: Path) -> None:
    source = Falling()
    seen = []

    def progress(boot: int, where: object) -> None:
        seen.append(where)
        if len(seen) == 8:  # four warm-ups, three samples, and the next
            source.low.set()

    with scripted.serve(Script(step_ms=10)) as endpoint, pytest.raises(SparkserveError) as raised:
        session.measure(Lab(endpoint, source), SHORT, tmp_path / "r.json", limits=LIMITS, progress=progress)
    assert raised.value.id == "BENCH.MEMORY"
    kept = results.read(tmp_path / "r.json")
    assert _samples(kept) in (3, 4)  # the one under way may just have ended
    assert kept.boots[0].memory["spark-0"] <= 50
    assert any(note.startswith("cut short: 0.10 GiB") for note in kept.boots[0].notes)


class StopError(Exception):
    """Ends a run in a test."""


def _cut(lab: Lab, output: Path, samples: int, begun: Result | None = None) -> Result:
    """A run that ends before its next sample after `samples`."""

    def progress(boot: int, where: Progress) -> None:
        if where.taken >= samples:
            raise StopError

    with pytest.raises(StopError):
        session.measure(lab, SHORT, output, limits=LIMITS, begun=begun, progress=progress)
    return results.read(output)


def test_a_cut_boot_is_gone_on_with(tmp_path: Path) -> None:
    output = tmp_path / "r.json"
    with scripted.serve(Script(step_ms=1)) as endpoint:
        lab = Lab(endpoint)
        before = _cut(lab, output, 5)
        assert _samples(before) == 5
        assert arms.is_cut(before.boots[0])
        after = session.measure(lab, SHORT, output, limits=LIMITS, begun=before)
    assert len(after.boots) == 1
    assert after.boots[0].id == before.boots[0].id
    assert not arms.is_cut(after.boots[0])
    for name, point in after.boots[0].points.items():
        assert [sample.round for sample in point.samples] == [0, 1, 2]
        old = before.boots[0].points.get(name)
        assert old is None or point.samples[: len(old.samples)] == old.samples
    requests = [value for name, value in after.boots[0].counters.items() if "num_requests_total" in name]
    assert sum(requests) == 3 * (1 + 2) * 2


def test_a_cut_boot_whose_engine_is_gone_stays_as_it_is(tmp_path: Path) -> None:
    output = tmp_path / "r.json"
    with scripted.serve(Script(step_ms=1)) as endpoint:
        lab = Lab(endpoint)
        before = _cut(lab, output, 5)
        lab.restart()
        after = session.measure(lab, SHORT, output, limits=LIMITS, begun=before)
    assert [arms.is_cut(boot) for boot in after.boots] == [True, False]
    assert after.boots[0] == before.boots[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_killed_command_leaves_a_whole_file(
    number: signal.Signals, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "r.json"
    with scripted.serve(Script(step_ms=150)) as endpoint:  # four samples take 5 s: none ends before the kill
        where = ["--endpoint", endpoint, "--model", "scripted"]
        words = ["bench", "decode", *where, "--cases", "prose", "--streams", "1,2", "--tokens", "8"]
        words += ["--min", "3", "--max", "3"]
        process = subprocess.Popen(
            [sys.executable, "-m", "sparkserve.cli.main", *words, "--output", str(output)],
            env={**os.environ, "PYTHONPATH": str(SRC)},
            stderr=subprocess.PIPE,
        )
        try:
            deadline = time.monotonic() + 60
            while not output.exists() or _samples(results.read(output)) < 2:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(number)
            assert process.wait(30) == code
        finally:
            process.kill()
            assert process.stderr is not None
            said = process.stderr.read().decode()
            process.stderr.close()
    kept = results.read(output)
    assert 2 <= _samples(kept) < 6
    assert arms.is_cut(kept.boots[0])
    if number != signal.SIGKILL:
        assert f"--resume {output}" in said
    port = int(endpoint.rpartition(":")[2])
    with scripted.serve(Script(), port), pytest.raises(SystemExit) as ended:
        main(["bench", "decode", *where, "--resume", str(output), "--json"])
    assert ended.value.code == 0
    whole = Result.model_validate_json(capsys.readouterr().out)
    assert whole == results.read(output)
    # Nobody knows whether the engine of an endpoint still runs: another boot takes the place of the one cut.
    assert whole.boots[0] == kept.boots[0]
    assert all(len(point.samples) == 3 for point in whole.boots[1].points.values())


class Case(NamedTuple):
    """A command line and what is said of it."""

    words: list[str]
    said: str


@pytest.mark.parametrize(
    "case",
    [
        Case(["--cases", "pros"], "did you mean prose?"),
        Case(["--streams", "0"], "between 1 and 32"),
        Case(["--streams", "one"], "not numbers"),
        Case(["--streams", "5"], "the engine takes 4 requests at once"),
        Case(["--min", "5", "--max", "4"], "--max is less than --min"),
        Case(["--min", "1"], "--min 1 has no interval"),
        Case(["--fleet", "local-single"], "either --fleet or --endpoint"),
        Case(["--boots", "2"], "an endpoint has one boot"),
    ],
    ids=lambda case: " ".join(case.words),
)
def test_what_cannot_be_measured_is_refused(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted.serve(Script(slots=4)) as endpoint, pytest.raises(SystemExit) as ended:
        where = ["--endpoint", endpoint, "--model", "scripted", "--output", str(tmp_path / "r.json")]
        main(["bench", "decode", *where, "--quick", *case.words])
    assert ended.value.code == 2
    assert case.said in " ".join(capsys.readouterr().err.split())


def test_the_table_names_points_and_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted.serve(Script(step_ms=1)) as endpoint, pytest.raises(SystemExit) as ended:
        where = ["--endpoint", endpoint, "--model", "scripted", "--output", str(tmp_path / "r.json")]
        main(["bench", "decode", *where, "--quick"])
    assert ended.value.code == 0
    printed = capsys.readouterr()
    header, *rows = printed.out.splitlines()
    assert header.split()[:3] == ["point", "step_ms", "tps"]
    assert [row.split()[0] for row in rows] == ["prose-c1", "prose-c2"]
    assert all("±" in row for row in rows)
    assert "compare wants several boots" in printed.err
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "sparkserve.bench/1"


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "r.json"
    output.write_text("an hour's work")
    with scripted.serve(Script()) as endpoint, pytest.raises(SystemExit) as ended:
        where = ["--endpoint", endpoint, "--model", "scripted", "--output", str(output)]
        main(["bench", "decode", *where, "--quick"])
    assert ended.value.code == 2
    assert "--resume" in capsys.readouterr().err
    assert output.read_text() == "an hour's work"


def test_defaults_are_cut_to_what_the_engine_takes() -> None:
    takes = capacity.Capacity(running=4, tokens=8000, pool=16000)
    decode = measuring.fitted(Settings(), set(), takes)
    assert decode.streams == (1, 2, 4)
    assert decode.sizes == (2048,)
    # Four of a pool of 16,000 tokens have 4,000 each, less the answer and the template.
    admission = Settings(mode="admission", streams=(4,), sizes=(65536,), tokens=256)
    assert measuring.fitted(admission, set(), takes).sizes == (4000 - 256 - 64,)
    with pytest.raises(click.UsageError, match="the engine takes 7680 tokens"):
        measuring.fitted(admission, {"sizes"}, takes)
    assert measuring.fitted(Settings(), set(), capacity.Capacity(None, None, None)) == Settings()


def test_tab_offers_what_may_come_after_a_comma() -> None:
    offered = measuring.Listed("case", lambda: ["prose", "code", "chat"])
    context, option = click.Context(click.Command("x")), click.Option(["--cases"])
    found = offered.shell_complete(context, option, "prose,c")
    assert [item.value for item in found] == ["prose,code", "prose,chat"]
    assert [item.value for item in offered.shell_complete(context, option, "p")] == ["prose"]


@pytest.mark.parametrize(("slots", "code"), [(2, 84), (4, 0)])
def test_documents_that_do_not_run_together_are_an_error(
    slots: int,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two slots for four documents: all are answered, two at a time. Here the engine does not say so."""
    monkeypatch.setattr(capacity, "of", lambda target: capacity.Capacity(None, None, None))
    words = ["--streams", "4", "--sizes", "100", "--tokens", "30", "--output", str(tmp_path / "r.json")]
    with scripted.serve(Script(slots=slots, step_ms=3)) as endpoint, pytest.raises(SystemExit) as ended:
        main(["bench", "admission", "--endpoint", endpoint, "--model", "scripted", *words])
    assert ended.value.code == code
    if code:
        assert "2 of 4 ran at one time" in " ".join(capsys.readouterr().err.split())
