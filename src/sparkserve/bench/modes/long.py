"""Long prompts of exact lengths: what prefill, prefix, admission and mixed share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.bench.workloads import texts
from sparkserve.bench.workloads.fit import fit

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.bench.asker import Asker
    from sparkserve.bench.settings import Settings
    from sparkserve.bench.task import Task
    from sparkserve.bench.workloads.texts import Kind

    Point = Callable[[Settings, Asker, Kind, int, int], Task]

_PROBE = 4000  # characters


def tasks(settings: Settings, asker: Asker, point: Point) -> list[Task]:
    """The `point` of every size with every kind of text at every number of streams."""
    return [
        point(settings, asker, kind, size, streams)
        for size in settings.sizes
        for kind in settings.texts
        for streams in settings.streams
    ]


class Prompts:
    """Prompts of one kind and size, each of its own text by `label`; in order they are `sha256`.

    By the engine's /tokenize they have exactly `size` tokens, or one or two less; where it has none, by what
    a probe weighs, which is some percent off. What they really had is in the samples, from usage.
    """

    def __init__(self, asker: Asker, settings: Settings, kind: Kind, size: int) -> None:
        self._asker = asker
        self._seed = settings.seed
        self._kind = kind
        self._size = size
        self._weight: float | None = None  # characters of a token, where nobody counts
        self._distinct = 1.0
        self._notes: list[str] = []
        self.sha256: list[str] = []

    async def draw(self, label: str, number: int) -> str:
        """The prompt `label` of round `number`; warm-ups are not listed.

        Raises `BENCH.REQUEST` when the endpoint does not even answer a probe.
        """
        found = await fit(self._kind, self._size, f"{self._seed}:{label}:{number}", self._count)
        self._distinct = min(self._distinct, found.distinct)
        if self._weight is None and found.tokens != self._size:
            self._notes.append(f"{self._kind} text of {self._size} tokens: has {found.tokens} at one time")
        if number >= 0 and found.sha256 not in self.sha256:
            self.sha256.append(found.sha256)
        return found.text

    def notes(self) -> list[str]:
        """How much of the texts is said once only, and what could not be exact."""
        if not self.sha256:
            return []
        name = f"{self._kind} text of {self._size} tokens"
        ratio = f"{name}: {self._distinct:.3f} of its trigrams are distinct"
        if self._kind != "filler" and self._distinct < texts.DISTINCT:
            ratio += f", less than the {texts.DISTINCT} of an honest text"
        return [ratio, *dict.fromkeys(self._notes)]

    async def _count(self, text: str) -> int:
        if self._weight is None:
            count = await self._asker.count(text)
            if count is not None:
                return count
            self._notes.append("the endpoint does not count tokens: lengths of prompts are estimates")
            self._weight = await self._probe()
        return round(len(text) / self._weight)

    async def _probe(self) -> float:
        text = texts.text(self._kind, _PROBE, f"{self._seed}:probe")
        return len(text) / await self._asker.prompt_tokens(text)
