"""Clients that ask an endpoint without pause, and how each of their requests ended."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import httpx

from sparkserve import api_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# answered: whole. refused: 503 with Retry-After. broken: begun, and an error that says that it broke.
# untaken: the connection was refused or closed before a byte came. lost: none of these, so nobody can know.
End = Literal["answered", "refused", "broken", "untaken", "lost"]
ENDS: tuple[End, ...] = ("answered", "refused", "broken", "untaken", "lost")
AT_ONCE = 2
TOKENS = 24
SILENT_S = 120.0  # without a byte
PAUSE_S = 0.5  # of a client that was not served


@dataclass
class Tally:
    """Requests by their end, and in words the first of those that were lost."""

    ends: Counter[End] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, end: End, why: str) -> None:
        """One more."""
        with self._lock:
            self.ends[end] += 1
            if end == "lost" and len(self.lost) < 5:
                self.lost.append(why)

    @property
    def words(self) -> str:
        """All of them in a line."""
        return ", ".join(f"{self.ends[end]} {end}" for end in ENDS)


@contextmanager
def asking(endpoint: str, model: str, key_file: Path | None = None) -> Iterator[Tally]:
    """`AT_ONCE` clients ask while the body runs; when it has ended, every request has too."""
    tally, stop = Tally(), threading.Event()
    url, headers = f"{endpoint}/v1/chat/completions", api_key.headers(key_file)

    def work(number: int) -> None:
        # Not through a proxy of the environment, which reaches no loopback of ours.
        with httpx.Client(trust_env=False, headers=headers, timeout=httpx.Timeout(SILENT_S)) as client:
            while not stop.is_set():
                question = f"Tell me a story about a lighthouse, chapter {number}."
                body = {"model": model, "messages": [{"role": "user", "content": question}]}
                end, why = ask(client, url, {**body, "max_tokens": TOKENS, "temperature": 0, "stream": True})
                tally.add(end, why)
                if end != "answered":
                    time.sleep(PAUSE_S)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    try:
        yield tally
    finally:
        stop.set()
    for thread in threads:  # after an error nobody counts any more
        thread.join()


def ask(client: httpx.Client, url: str, body: dict[str, object]) -> tuple[End, str]:
    """How one streamed request ends, and why."""
    begun = whole = told = False
    try:
        with client.stream("POST", url, json=body) as answer:
            begun = True
            if answer.status_code != httpx.codes.OK:
                said = answer.read()[:300].decode(errors="replace")
                return _refused(answer), f"HTTP {answer.status_code}: {said}"
            for line in answer.iter_lines():
                whole = whole or line == "data: [DONE]"
                told = told or line.startswith('data: {"error"')
    except httpx.TimeoutException as error:
        return "lost", f"silent for {SILENT_S:.0f} s: {error!r}"
    except httpx.HTTPError as error:
        if not begun:
            return "untaken", repr(error)
        return ("broken" if told else "lost"), repr(error)
    if told:
        return "broken", "an error event"
    return ("answered", "") if whole else ("lost", "the stream ended as if it were whole")


def _refused(answer: httpx.Response) -> End:
    """An answer that is an error: of the front, or the engine's last word."""
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and "retry-after" in answer.headers:
        return "refused"
    return "broken" if answer.status_code == httpx.codes.BAD_GATEWAY else "lost"
