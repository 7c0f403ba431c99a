"""Every name that we export: its kind, its labels, what it says. docs/metrics.md lists the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Family(NamedTuple):
    """One name. Names that end in `_total` count up; all others say how something is now."""

    says: str
    labels: tuple[str, ...] = ()


class Sample(NamedTuple):
    """One value of a family; `labels` in the family's order."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


FAMILIES = {
    # Of every node.
    "sparkserve_info": Family(
        "1; the closure in effect", ("fleet_id", "plan", "closure", "model", "rank", "size")
    ),
    "sparkserve_generation": Family("Generation of the node's profile"),
    "sparkserve_generation_timestamp_seconds": Family("When that became the node's"),
    "sparkserve_rank_up": Family("Whether an engine runs on this node"),
    "sparkserve_rank_boot": Family("The boot that this node last took part in"),
    "sparkserve_adapter_info": Family(
        "1; an adapter that this rank has armed, with the digest that it agreed on", ("adapter", "digest")
    ),
    "sparkserve_memory_available_bytes": Family("MemAvailable: CPU and GPU share it"),
    "sparkserve_memory_total_bytes": Family("MemTotal"),
    "sparkserve_guard_up": Family("Whether the memory guard wrote lately"),
    "sparkserve_guard_phase": Family("1 for what the guard's floor is now", ("phase",)),
    "sparkserve_guard_floor_bytes": Family("What the guard keeps free"),
    "sparkserve_guard_line_bytes": Family("MemAvailable below which it kills the engine"),
    "sparkserve_guard_low_water_bytes": Family("The least MemAvailable since the node's boot"),
    "sparkserve_guard_engine_low_water_bytes": Family("The least since the engine's start"),
    "sparkserve_guard_kills_total": Family("Engines that the guard killed since the node's boot"),
    "sparkserve_guard_last_kill_timestamp_seconds": Family("When it last did"),
    "sparkserve_guard_lacks": Family("Rights that the guard asked the kernel for and did not get"),
    "sparkserve_link_carrier": Family("Whether a port has a signal", ("interface", "rail", "stripe")),
    "sparkserve_gpu_use_ratio": Family("Share of time that the GPU was busy, also when it only waited"),
    "sparkserve_gpu_power_watts": Family("What the GPU takes"),
    "sparkserve_gpu_clock_hertz": Family("The clock of its multiprocessors"),
    "sparkserve_gpu_temperature_celsius": Family("Its temperature"),
    # Of the head.
    "sparkserve_group_state": Family("1 for what the controller does with the group", ("state",)),
    "sparkserve_group_info": Family("1; the boot, and the phase of a start", ("boot", "phase")),
    "sparkserve_group_since_timestamp_seconds": Family("When that state began"),
    "sparkserve_group_wanted": Family("Whether the group is to run; 0 after an operator's stop or giving up"),
    "sparkserve_group_boots_total": Family(
        "Boots that were begun, also those that ended before an engine ran"
    ),
    "sparkserve_lost_seconds": Family("Age of the last token from which clients are refused"),
    "sparkserve_front_up": Family("Whether the front wrote lately"),
    "sparkserve_front_verdict": Family("1 for what clients are told", ("verdict",)),
    "sparkserve_token_age_seconds": Family("Since a token came out of the whole group; none in a new boot"),
    "sparkserve_canary_result": Family("1 for how the last canary ended", ("result",)),
    "sparkserve_canary_age_seconds": Family("Since it was sent"),
    "sparkserve_canary_duration_seconds": Family("What it took, or has been out"),
    "sparkserve_requests_in_flight": Family("Requests that are with the engine"),
    "sparkserve_requests_total": Family(
        "Requests that are over, by their end, since the front's start", ("end",)
    ),
}


def exposition(samples: Iterable[Sample]) -> bytes:
    """`samples` in Prometheus' text form."""
    registry = CollectorRegistry()
    registry.register(_Samples(samples))
    return generate_latest(registry)


class _Samples(Collector):
    def __init__(self, samples: Iterable[Sample]) -> None:
        self._families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for name, value, labels in samples:
            family = FAMILIES[name]
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            made = self._families.setdefault(name, kind(name, family.says, labels=family.labels))
            made.add_metric(labels, value)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        yield from self._families.values()
