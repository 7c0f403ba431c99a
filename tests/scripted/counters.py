"""/metrics, with SGLang's names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripted.engine import Engine, Running
    from scripted.script import Script

_BUCKETS = (0.1, 0.5, 1.0, 5.0, 10.0, 60.0)


class Counters:
    """Totals since the start, counted when a request ends as SGLang does."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._finished = 0
        self._clear()

    def _clear(self) -> None:
        self._born = time.monotonic()
        self._totals: dict[str, dict[str, float]] = {}  # by family, then by sample
        self._acceptance = (0.0, 0.0)  # of the last request: length, rate
        self.add("num_retracted_requests_total", 0)

    def add(self, name: str, value: float, **labels: str) -> None:
        """To one counter."""
        self._add(f"sglang:{name}", f"sglang:{name}", value, labels)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """In one histogram."""
        family = f"sglang:{name}_seconds"
        for limit in (*map(str, _BUCKETS), "+Inf"):
            self._add(family, f"{family}_bucket", float(seconds <= float(limit)), {**labels, "le": limit})
        self._add(family, f"{family}_sum", seconds, labels)
        self._add(family, f"{family}_count", 1.0, labels)

    def _add(self, family: str, name: str, value: float, labels: dict[str, str]) -> None:
        samples = self._totals.setdefault(family, {})
        key = self._key(name, labels)
        samples[key] = samples.get(key, 0.0) + value

    def _key(self, name: str, labels: dict[str, str]) -> str:
        own = {"model_name": self._script.model, "engine_type": "unified", "tp_rank": "0", **labels}
        inner = ",".join(f'{label}="{text}"' for label, text in own.items())
        return f"{name}{{{inner}}}"

    def finished(self, running: Running) -> None:
        """Count one request."""
        now, streaming = time.monotonic(), str(running.request.stream).lower()
        prompt, new = len(running.request.ids), len(running.out)
        self.add("prompt_tokens_total", prompt, is_streaming=streaming)
        self.add("generation_tokens_total", new, is_streaming=streaming)
        self.add("num_requests_total", 1, is_streaming=streaming)
        self.add("realtime_tokens_total", prompt - running.cached, mode="prefill_compute")
        self.add("realtime_tokens_total", running.cached, mode="prefill_cache")
        self.add("realtime_tokens_total", new, mode="decode")
        if running.cached:
            self.add("cached_tokens_total", running.cached, cache_source="device")
        if running.verified:
            self.add("spec_verify_calls_total", running.verified)
            self._acceptance = new / running.verified, running.accepted / running.proposed
        self.observe("time_to_first_token", (running.first or now) - running.born, is_streaming=streaming)
        self.observe("e2e_request_latency", now - running.born, is_streaming=streaming)
        self._finished += 1
        if self._script.reset_after and self._finished % self._script.reset_after == 0:
            self._clear()

    def text(self, engine: Engine) -> str:
        """All of them, in Prometheus' text form."""
        script = self._script
        gauges = {
            "num_running_reqs": len(engine.running) + script.foreign,
            "num_queue_reqs": len(engine.waiting),
            "spec_accept_length": self._acceptance[0],
            "spec_accept_rate": self._acceptance[1],
            "spec_num_draft_tokens": script.draft + 1 if script.draft else 0,
            "spec_cap_length": 0,
            "max_total_num_tokens": script.context,
            "page_size": script.page,
        }
        lines: list[str] = []
        for name, value in gauges.items():
            lines += _header(f"sglang:{name}", "gauge")
            lines.append(f"{self._key(f'sglang:{name}', {})} {float(value)}")
        own = {family: dict(samples) for family, samples in self._totals.items()}
        self._add_foreign()
        for family, samples in self._totals.items():
            lines += _header(family, "counter" if family.endswith("_total") else "histogram")
            lines += [f"{key} {value}" for key, value in samples.items()]
        self._totals = own
        return "\n".join(lines) + "\n"

    def _add_foreign(self) -> None:
        """What somebody else's requests have counted by now: 100 tokens each, 50 of prompt."""
        script = self._script
        steps = (time.monotonic() - self._born) * 1000 / (script.step_ms or 10.0)
        ended = script.foreign * int(steps / 100)
        if ended:
            self.add("generation_tokens_total", 100 * ended, is_streaming="true")
            self.add("prompt_tokens_total", 50 * ended, is_streaming="true")
            self.add("num_requests_total", ended, is_streaming="true")


def _header(family: str, kind: str) -> list[str]:
    return [f"# HELP {family} As SGLang has it.", f"# TYPE {family} {kind}"]
