"""The published tables: right cells, by hand from what the authors print, and what each says of itself."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from sparkserve.bench import references
from sparkserve.bench.results import METRICS
from sparkserve.errors import SparkserveError

# Read off the authors' pages, not off our files.
CELLS = [
    ("knapcio-v2.4", "prose-c1", "decode_window_tps", 89.9),
    ("knapcio-v2.4", "code-c8", "decode_window_tps", 306.8),
    ("knapcio-v2.4", "json-c16", "decode_window_tps", 632.8),
    ("knapcio-v2.4", "structured-c16", "stream_tps", 44.7),
    ("knapcio-v2.4", "prefill-32768", "prefill_tps", 5941),
    ("knapcio-v2.4", "prefill-131072", "prefill_tps", 5896),
    ("knapcio-v2.3", "structured-c4", "decode_window_tps", 242.1),
    ("knapcio-v2.3", "prefill-4096", "prefill_tps", 4688),
    ("mia-tp4", "json-c1", "decode_window_tps", 118.9),
    ("mia-tp4", "code-c4", "stream_tps", 63.2),
    ("mia-tp4", "prefill-262144", "prefill_tps", 5394),
    ("mia-tp3", "prose-c2", "ttft_s", 0.290),
    ("mia-tp8", "structured-c8", "decode_window_tps", 302.4),
    ("mia-tp8", "prefill-4096", "prefill_tps", 2715),
    ("mia-2xtp4", "json-c32", "decode_window_tps", 1266.1),
    ("mia-2xtp4", "prefill-8192-c32", "prefill_tps", 10229),
    ("owen-r6-tp3", "prose-c1", "step_ms", 38.21),
    ("owen-r6-tp3", "code-c8", "accepted_per_verified", 0.653),
    ("owen-r6-tp3", "code-c4", "tps", 159.2),
    ("owen-r6-tp3", "prefill-32768", "prefill_tps", 4306),
    ("owen-r6-tp4", "prose-c16", "decode_window_tps", 322.0),
    ("owen-r6-tp4", "code-c16", "tokens_per_step", 2.567),
    ("owen-r6-tp4", "prefill-1000000", "prefill_tps", 4370),
]


@pytest.mark.parametrize(("name", "point", "metric", "value"), CELLS)
def test_cell(name: str, point: str, metric: str, value: float) -> None:
    assert references.load(name).points[point].metrics[metric] == value


def test_published_interval() -> None:
    points = references.load("owen-r6-tp3").points
    assert points["code-c4"].percent == {"tps": 44}
    assert points["prefill-32768"].percent == {"prefill_tps": 20.9}


@pytest.mark.parametrize("name", references.known())
def test_says_what_it_is(name: str) -> None:
    found = references.load(name)
    assert found.conditions
    assert found.caveats
    for point in found.points.values():
        assert point.percent.keys() <= point.metrics.keys()
        assert all(value > 0 for value in point.metrics.values())
    # A filler's prefill is told apart, in the words too.
    fillers = [key for key, point in found.points.items() if point.text == "filler"]
    assert bool(fillers) == any("overstates prefill" in caveat for caveat in found.caveats)


def test_every_file_is_known_and_tables_are_whole() -> None:
    assert set(references.known()) == {name for name, *_ in CELLS}
    v24, tp4 = references.load("knapcio-v2.4").points, references.load("owen-r6-tp4").points
    for case in ("prose", "code", "structured", "json"):
        assert {f"{case}-c{n}" for n in (1, 2, 4, 8, 16)} <= v24.keys()
    assert sum(name.startswith("prefill-") for name in v24) == 5
    assert {f"{case}-c{n}" for case in ("prose", "code") for n in (1, 2, 4, 8, 16)} <= tp4.keys()


def test_places() -> None:
    assert references.place("prose-c4") == ("prose", 4)
    assert references.place("json-schema-1k-c16") == ("json-schema-1k", 16)
    assert references.place("prefill-32768") == ("prefill-32768", 1)
    assert references.place("prefill-32768-c8") == ("prefill-32768", 8)
    assert references.place("tail-c") == ("tail-c", 1)


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(SparkserveError) as caught:
        references.load("../results")
    assert caught.value.id == "BENCH.RESULT"
    assert "owen-r6-tp4" in caught.value.expected


def test_a_metric_of_no_name_of_ours_is_refused() -> None:
    text = json.loads(files(references).joinpath("mia-tp3.json").read_text())
    text["points"]["prose-c1"]["metrics"]["speed"] = 1.0
    with pytest.raises(ValueError, match="no metric of ours: speed"):
        references.Reference.model_validate_json(json.dumps(text))
    assert "speed" not in METRICS
