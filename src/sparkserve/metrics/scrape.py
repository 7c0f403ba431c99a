"""The engine's counters, read from its /metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Mapping


def read(text: str) -> dict[str, float]:
    """Every sample by name, `name{label="value"}` without the model's name and the engine's ranks.

    SGLang labels each sample with what is the same for all of one endpoint; without those a name is one key.
    Samples that then have one key (of several schedulers) are added. A NaN is left out: it is SGLang's
    word for "not measured", and JSON has none. Raises ValueError for another format.
    """
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if math.isnan(sample.value):
                continue
            labels = {name: value for name, value in sample.labels.items() if name not in _SAME}
            inner = ",".join(f'{name}="{labels[name]}"' for name in sorted(labels))
            key = f"{sample.name}{{{inner}}}" if inner else sample.name
            found[key] = found.get(key, 0.0) + sample.value
    return found


def growth(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What grew from one reading to the next: counters, and buckets, sums and counts of histograms.

    Raises ValueError when a counter went backwards, because the engine was started again between the two.
    """
    grown = {}
    for name, value in after.items():
        family = name.partition("{")[0]
        if family in _GAUGES or not family.endswith(("_total", "_count", "_sum", "_bucket")):
            continue
        difference = value - before.get(name, 0.0)
        if difference < 0:
            raise ValueError(f"{name} went from {before[name]} to {value}: the engine was started again")
        if difference:
            grown[name] = difference
    return grown


_SAME = frozenset(
    {"model_name", "engine_type", "pid", "tp_rank", "pp_rank", "dp_rank", "moe_ep_rank", "priority"}
)
# Their names end as a histogram's do.
_GAUGES = frozenset({"sglang:routing_key_running_req_count", "sglang:routing_key_all_req_count"})
