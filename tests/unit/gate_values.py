"""Evidence and a client that answers what a test says, for tests of the gates' core."""

from __future__ import annotations

from typing import Any, Self

from sparkserve.client.reply import Reply
from sparkserve.gates.evidence import Evidence, Subject

SUBJECT = Subject(endpoint="http://127.0.0.1:1", model="m", fleet="desk", fleet_id="f" * 64)


def evidence(**changed: Any) -> Evidence:
    given: dict[str, Any] = {
        **{"gate": "smoke", "passed": True, "ran": True, "summary": "well", "subject": SUBJECT},
        **{"started": "2026-11-30T22:00:00+00:00", "seconds": 1.5, "quick": True, "seed": 7},
    }
    return Evidence(**(given | changed))


class FakeClient:
    """Answers each request with an empty 200; `health` and `metrics` are what the next reading says."""

    def __init__(self, endpoint: str = "http://127.0.0.1:1") -> None:
        self.endpoint = endpoint
        self.health: int | None = 200
        self.metrics: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, path: str, body: dict[str, Any], *, timeout_s: float = 300.0) -> Reply:
        return Reply(status=200, error=None, seconds=0.1)

    async def get(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, bytes]:
        if self.health is None:
            raise ConnectionError("refused")
        if path == "/metrics":
            return (200, self.metrics.pop(0).encode()) if self.metrics else (404, b"")
        return self.health, b"sick"
