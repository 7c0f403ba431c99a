"""Which model a request asks for: SGLang answers under any name, and the client would not know who spoke."""

from __future__ import annotations

import json
import re

# A million tokens of text. Larger bodies pass unread, so that no request takes more of our memory.
CHECKED_BYTES = 4 * 1024 * 1024


class Model:
    """The one that is served, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._named = re.compile(rb'"model"\s*:\s*' + re.escape(json.dumps(name).encode()))

    def other(self, body: bytes) -> str | None:
        """The name in a JSON body when it is another one; None also for a body that names none."""
        # Parsing a large body would stop every stream for milliseconds. Quotes in a string have a backslash
        # before them, so this finds nothing that a prompt says.
        if self._named.search(body):
            return None
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):  # the engine says what it thinks of that
            return None
        name = value.get("model") if isinstance(value, dict) else None
        # "NAME:X" is the adapter X (LoRA) of the model NAME to SGLang, which knows those it has.
        return name if isinstance(name, str) and not f"{name}:".startswith(f"{self.name}:") else None
