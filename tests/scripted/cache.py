"""A prefix cache of pages, as SGLang's radix cache looks from outside."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Cache:
    """Whole pages of tokens, each known with all before it. `salt` keeps requests apart."""

    def __init__(self, page: int) -> None:
        self._page = page
        self._pages: dict[bytes, str] = {}  # to the prompt that filled it

    def match(self, ids: Sequence[int], salt: str, limit: int) -> tuple[int, str]:
        """Tokens that are there, never past `limit`, and the prompt that filled the last of them."""
        found, owner = 0, ""
        for end, key in self._keys(ids[:limit], salt):
            if key not in self._pages:
                break
            found, owner = end, self._pages[key]
        return found, owner

    def insert(self, ids: Sequence[int], salt: str, prompt: str) -> None:
        """Keep the whole pages of `ids`."""
        for _, key in self._keys(ids, salt):
            self._pages.setdefault(key, prompt)

    def flush(self) -> None:
        """Forget all."""
        self._pages.clear()

    def _keys(self, ids: Sequence[int], salt: str) -> Iterator[tuple[int, bytes]]:
        key = salt.encode(errors="replace")
        for end in range(self._page, len(ids) + 1, self._page):
            key = blake2b(key + repr(ids[end - self._page : end]).encode(), digest_size=16).digest()
            yield end, key
