"""Dashboard and alerts use only what is exported, and docs/metrics.md knows each name and each alert.

That every expression parses, and that each alert fires when it must: checks/alerts.nix, with promtool.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparkserve.metrics.families import FAMILIES

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docs/monitoring"
ALERTS = (MONITORING / "alerts.yml").read_text()
DASHBOARD = (MONITORING / "sparkserve.json").read_text()
DOCS = (ROOT / "docs/metrics.md").read_text()
SGLANG = Path(__file__).with_name("sglang.prom").read_text()


def exported() -> set[str]:
    """All names with the labels that can be asked for."""
    of_sglang = {
        sample.name for family in text_string_to_metric_families(SGLANG) for sample in family.samples
    }
    return of_sglang | set(FAMILIES)


def used(text: str) -> set[str]:
    return set(re.findall(r"\b(?:sparkserve_[a-z_]+|sglang:[a-zA-Z_]+)", text))


@pytest.mark.parametrize("text", [ALERTS, DASHBOARD])
def test_only_what_is_exported(text: str) -> None:
    assert len(used(text)) > 10
    assert used(text) - exported() == set()


def test_only_labels_that_there_are() -> None:
    of_targets = {"fleet", "node", "part", "instance", "job"}
    for text in (ALERTS, json.dumps(json.loads(DASHBOARD)).replace('\\"', '"')):
        for name, inner in re.findall(r"(sparkserve_[a-z_]+)\{([^}]*)\}", text):
            asked = set(re.findall(r"(\w+)=", inner))
            assert asked <= of_targets | set(FAMILIES[name].labels), name


def test_docs_know_every_name_of_ours() -> None:
    listed = set(re.findall(r"^\| `(sparkserve_[a-z_]+)`", DOCS, re.MULTILINE))
    assert listed == set(FAMILIES)


def test_docs_and_tests_know_every_alert() -> None:
    alerts = re.findall(r"- alert: (\w+)", ALERTS)
    tested = (ROOT / "tests/monitoring/alerts_test.yml").read_text()
    assert len(alerts) == len(set(alerts)) > 10
    assert re.findall(r"^\| `(Sparkserve\w+)` \| .+ \| .+ \|$", DOCS, re.MULTILINE) == alerts
    for alert in alerts:
        fires = re.findall(rf"alertname: {alert}\n +eval_time: \w+\n +exp_alerts:\n", tested)
        quiet = re.findall(rf"alertname: {alert}, eval_time: \w+, exp_alerts: \[\]", tested)
        assert fires and quiet, alert


def test_every_panel_has_a_place_of_its_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD)["panels"]:
        x, y, w, h = (panel["gridPos"][side] for side in "xywh")
        cells = {(x + i, y + j) for i in range(w) for j in range(h)}
        assert x + w <= 24 and not cells & taken, panel["title"]
        taken |= cells
