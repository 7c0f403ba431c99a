"""What is read from /metrics of SGLang: `sglang.prom` is what the pinned one said after six requests.

It is the real text without most buckets; tests/host/test_up_down.py sees that the engine says these names.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparkserve.metrics import scrape

SAID = Path(__file__).with_name("sglang.prom").read_text()


def test_one_key_for_one_count() -> None:
    found = scrape.read(SAID)
    assert found['sglang:prompt_tokens_total{is_streaming="false"}'] == 141
    assert found['sglang:generation_tokens_total{is_streaming="true"}'] == 70
    assert found["sglang:max_total_num_tokens"] == 8192
    # SGLang's word for what it does not know; in a result it would be no JSON.
    assert "sglang:fwd_occupancy" not in found
    json.dumps(found, allow_nan=False)


def test_ranks_are_added() -> None:
    lines = 'n_total{tp_rank="0",mode="a"} 2\nn_total{tp_rank="1",mode="a"} 3\nn_total{mode="b"} 1\n'
    assert scrape.read("# TYPE n_total counter\n" + lines) == {'n_total{mode="a"}': 5, 'n_total{mode="b"}': 1}


def test_only_what_counts_grows() -> None:
    before = dict.fromkeys(scrape.read(SAID), 0.0)
    grown = {name.partition("{")[0] for name in scrape.growth(before, scrape.read(SAID))}
    for family in text_string_to_metric_families(SAID):
        if family.type == "gauge":
            assert family.name not in grown
    assert {"sglang:num_requests_total", "sglang:time_to_first_token_seconds_bucket"} <= grown


def test_a_gauge_that_ends_as_a_counter_may_fall() -> None:
    name = 'sglang:routing_key_running_req_count{gt="0",le="1"}'
    assert scrape.growth({name: 2.0}, {name: 0.0}) == {}


def test_an_engine_started_again_is_no_growth() -> None:
    with pytest.raises(ValueError, match=r"n_total went from 5\.0 to 1\.0: the engine was started again"):
        scrape.growth({"n_total": 5.0}, {"n_total": 1.0})


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError):
        scrape.read("<html>not here</html>")
