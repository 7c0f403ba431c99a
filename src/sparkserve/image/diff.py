"""`image diff`: which layers two images share, and what changed in those that they do not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.image import layers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sparkserve.image.layers import Entry, Layer


class File(NamedTuple):
    """A path that differs; `old` and `new` are None where it is not."""

    path: str
    old: Entry | None
    new: Entry | None

    @property
    def sign(self) -> str:
        """`+`, `-` or `~`."""
        return "+" if self.old is None else "-" if self.new is None else "~"


class Pair(NamedTuple):
    """A layer of A and the one of B that stands for it; None where there is none. Bytes are of files."""

    old: Layer | None
    new: Layer | None
    old_size: int
    new_size: int
    files: list[File]

    @property
    def state(self) -> str:
        """`added`, `removed`, or `changed`."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"

    @property
    def name(self) -> str:
        """What people call the layer, or nothing."""
        layer = self.new or self.old
        return layer.name if layer else ""


class Diff(NamedTuple):
    """`same`: the layers of both. The bytes that somebody who has A must still get are those of `pairs`."""

    same: list[Layer]
    pairs: list[Pair]

    def as_dict(self) -> dict[str, Any]:
        """The form that `--json` prints."""
        return {
            "same": [each.diff_id for each in self.same],
            "layers": [
                {
                    "state": pair.state,
                    "name": pair.name,
                    "old": pair.old and pair.old.diff_id,
                    "new": pair.new and pair.new.diff_id,
                    "old_bytes": pair.old_size,
                    "new_bytes": pair.new_size,
                    "files": [
                        {
                            "path": file.path,
                            "old": file.old and file.old._asdict(),
                            "new": file.new and file.new._asdict(),
                        }
                        for file in pair.files
                    ],
                }
                for pair in self.pairs
            ],
        }


def diff(one: Sequence[Layer], other: Sequence[Layer], detail: Callable[[str], None]) -> Diff:
    """Compare the layers `one` and `other`; only those that one side alone has are read."""
    both = Counter(each.diff_id for each in one) & Counter(each.diff_id for each in other)
    names = {each.diff_id: each for each in other if each.name}
    same = [names.get(each.diff_id, each) for each in one if each.diff_id in both]
    sides = []
    for side in (one, other):
        alone = [each for each in side if each.diff_id not in both]
        read = []
        for each in alone:
            detail(f"reading {each.name or each.diff_id}")
            read.append((each, each.entries()))
        sides.append(read)
    olds, news = sides
    pairs = []
    for new, after in news:
        # The one that has most of its files: an image has no names for its layers.
        best = max(olds, key=lambda old: _shared(old[1], after), default=None)
        if best is None or not _shared(best[1], after):
            pairs.append(Pair(None, new, 0, layers.size(after.values()), []))
            continue
        olds.remove(best)
        old, before = best
        sizes = layers.size(before.values()), layers.size(after.values())
        pairs.append(Pair(old, new, *sizes, _files(before, after)))
    pairs += [Pair(old, None, layers.size(before.values()), 0, []) for old, before in olds]
    return Diff(same, pairs)


def _shared(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> int:
    return sum(one[path].kind != "folder" for path in one.keys() & other.keys())


def _files(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[File]:
    paths = sorted(before.keys() | after.keys())
    return [
        File(path, before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)
    ]
