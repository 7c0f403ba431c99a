"""The tasks of qeval: one TOML file a category, written for this gate and taken from nowhere."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

CATEGORIES = ("code", "reasoning", "math", "json", "format", "prose")

Kind = Literal["code", "number", "numbers", "word", "clock", "json", "lines", "pattern", "cells", "prose"]
Role = Literal["primary", "secondary", "guard"]


class Task(BaseModel):
    """One question, and how an answer to it is checked (`checkers.py` has what each kind reads).

    `reference` is an answer that passes and `wrong` one that nearly does. `prompt` is whole, with the ending
    of its file. `proof` is Python that gives `value` another way.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    category: str
    role: Role
    kind: Kind
    name: str
    prompt: str
    max_tokens: int
    thinking: bool = False
    reference: str
    wrong: str
    value: str = ""
    proof: str = ""
    units: tuple[str, ...] = ()
    count: int = 0
    words: tuple[int, int] = (0, 0)
    must: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    language: Literal["", "en", "de", "es"] = ""
    paragraphs: int = Field(default=0, description="0: any number")
    function: str = ""
    cases: str = ""
    inputs: str = ""

    @property
    def id(self) -> str:
        """Such as math/salt-water."""
        return f"{self.category}/{self.name}"


@cache
def load() -> tuple[Task, ...]:
    """All tasks, in an order that never changes by itself."""
    return tuple(task for category in CATEGORIES for task in _file(category))


def _file(category: str) -> list[Task]:
    given = tomllib.loads(files(__name__).joinpath(f"{category}.toml").read_text())
    entries = given.pop("task")
    found = []
    for entry in entries:
        fields = {"category": category, **given, **entry}
        ending = fields.pop("ending")
        found.append(Task(**{**fields, "prompt": f"{fields['prompt']}\n\n{ending}"}))
    return found
