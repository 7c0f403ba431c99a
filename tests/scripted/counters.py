"""/metrics, with SGLang's names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripted.engine import Engine, Running
    from scripted.script import Script


class Counters:
    """Totals since the start, counted when a request ends as SGLang does."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._finished = 0
        self._clear()

    def _clear(self) -> None:
        self._born = time.monotonic()
        self._totals: dict[str, float] = {}
        self._last = (0.0, 0.0)  # acceptance: length, rate

    def add(self, name: str, value: float, **labels: str) -> None:
        """To one counter."""
        shown = "".join(f',{label}="{text}"' for label, text in labels.items())
        key = f'sglang:{name}{{model_name="{self._script.model}"{shown}}}'
        self._totals[key] = self._totals.get(key, 0.0) + value

    def finished(self, running: Running) -> None:
        """Count one request."""
        streaming = str(running.request.stream).lower()
        self.add("prompt_tokens_total", len(running.request.ids), is_streaming=streaming)
        self.add("generation_tokens_total", len(running.out), is_streaming=streaming)
        self.add("num_requests_total", 1, is_streaming=streaming)
        self.add("realtime_tokens_total", len(running.request.ids) - running.cached, mode="prefill_compute")
        self.add("realtime_tokens_total", running.cached, mode="prefill_cache")
        self.add("realtime_tokens_total", len(running.out), mode="decode")
        if running.cached:
            self.add("cached_tokens_total", running.cached, cache_source="device")
        if running.verified:
            self.add("spec_verify_calls_total", running.verified)
            self._last = len(running.out) / running.verified, running.accepted / running.proposed
        self._finished += 1
        if self._script.reset_after and self._finished % self._script.reset_after == 0:
            self._clear()

    def text(self, engine: Engine) -> str:
        """All of them, in Prometheus' text form."""
        script, totals = self._script, dict(self._totals)
        self._foreign()
        gauges = {
            "num_running_reqs": len(engine.running) + script.foreign,
            "num_queue_reqs": len(engine.waiting),
            "spec_accept_length": self._last[0],
            "spec_accept_rate": self._last[1],
            "max_total_num_tokens": script.context,
            "page_size": script.page,
        }
        lines: list[str] = []
        for name, value in gauges.items():
            lines += [f"# HELP sglang:{name} {name}", f"# TYPE sglang:{name} gauge"]
            lines.append(f'sglang:{name}{{model_name="{script.model}"}} {float(value)}')
        family = ""
        for key, value in sorted(self._totals.items()):
            if (name := key.partition("{")[0]) != family:
                family = name
                lines += [f"# HELP {name} {name}", f"# TYPE {name} counter"]
            lines.append(f"{key} {value}")
        self._totals = totals
        return "\n".join(lines) + "\n"

    def _foreign(self) -> None:
        """What somebody else's requests have counted by now: 100 tokens each, 50 of prompt."""
        script = self._script
        steps = (time.monotonic() - self._born) * 1000 / (script.step_ms or 10.0)
        ended = script.foreign * int(steps / 100)
        if ended:
            self.add("generation_tokens_total", 100 * ended, is_streaming="true")
            self.add("prompt_tokens_total", 50 * ended, is_streaming="true")
            self.add("num_requests_total", ended, is_streaming="true")
