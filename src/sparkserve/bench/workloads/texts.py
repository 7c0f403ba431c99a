"""Long texts for prefill, of three kinds that a result tells apart.

`real` is the source of Python's standard library: text that people wrote, the same wherever this Python is.
`novel` is drawn words that no tokenizer has met. `filler` is a pattern of few words: it keeps one row of an
n-gram table hot and overstates prefill by 9 to 42 % (knapcio 7.2, issue I04); it is there to compare with
tables that were made so, never to claim a speed.
"""

from __future__ import annotations

import random
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["real", "novel", "filler"]
KINDS: tuple[Kind, ...] = ("real", "novel", "filler")

DISTINCT = 0.9  # least ratio of `distinct` for a text that may be called real or novel (issue I04)
_SMALLEST = 4096  # bytes of a source file: smaller ones are mostly licences
# Tables of code points and tests repeat themselves.
_LEFT_OUT = frozenset({"test", "tests", "idle_test", "idlelib", "encodings", "site-packages"})
_BUILT = "_sysconfigdata"  # these say for which processor and in which folder this Python was built
_NEW = 0.75  # of a line's trigrams: a line that brings fewer is one that the text has had
_FILLER = (
    *("red", "box", "under", "oak", "table", "near", "old", "door", "with"),
    *("new", "lamp", "by", "cold", "sea", "and", "two", "grey", "birds"),
)


def text(kind: Kind, characters: int, seed: str) -> str:
    """At least `characters` characters of `kind` if there are as many, drawn by `seed`; about as many."""
    found, size = [], 0
    for line in _LINES[kind](random.Random(seed)):  # noqa: S311 - drawn, not secret
        found.append(line)
        size += len(line) + 1
        if size >= characters:
            break
    return "\n".join(found)


def distinct(value: str) -> float:
    """Distinct trigrams of words among all of them: near 1 where nothing is said twice, near 0 for filler."""
    words = value.split()
    if len(words) < 3:
        return 1.0
    return len(set(_trigrams(words))) / (len(words) - 2)


def _trigrams(words: list[str]) -> list[tuple[str, str, str]]:
    return list(zip(words, words[1:], words[2:], strict=False))


@cache
def _sources() -> tuple[Path, ...]:
    folder = Path(sysconfig.get_path("stdlib"))
    found = (path for path in folder.rglob("*.py") if not _LEFT_OUT & set(path.relative_to(folder).parts))
    written = (path for path in found if not path.name.startswith(_BUILT))
    return tuple(sorted(path for path in written if path.stat().st_size > _SMALLEST))


def _real(drawn: random.Random) -> Iterator[str]:
    files = list(_sources())
    drawn.shuffle(files)
    seen: set[tuple[str, str, str]] = set()
    last: list[str] = []
    for file in files:
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = [*last, *line.split()]
            trigrams = set(_trigrams(words))
            if trigrams and len(trigrams - seen) < _NEW * (len(words) - 2):
                continue
            seen |= trigrams
            last = words[-2:]
            yield line


def _novel(drawn: random.Random) -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    while True:
        yield " ".join("".join(drawn.choices(letters, k=drawn.randint(2, 4))) for _ in range(16))


def _filler(drawn: random.Random) -> Iterator[str]:
    first = drawn.randrange(len(_FILLER))
    line = " ".join(_FILLER[(7 * index + first) % len(_FILLER)] for index in range(len(_FILLER)))
    while True:
        yield line


_LINES = {"real": _real, "novel": _novel, "filler": _filler}
