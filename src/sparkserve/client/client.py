"""The client: requests to one endpoint, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply


class Client:
    """Requests to `endpoint`, such as http://127.0.0.1:8888, up to `streams` at once."""

    def __init__(self, endpoint: str, *, streams: int = 64) -> None:
        self.endpoint = endpoint
        self._streams = streams

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, path: str, body: dict[str, Any], *, timeout_s: float = 300.0) -> Reply:
        """POST `body`, as a stream when it asks for one. What goes wrong is in the reply."""
        raise NotImplementedError

    async def get(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, bytes]:
        """Status and body. Raises ConnectionError when nobody answers in time."""
        raise NotImplementedError
