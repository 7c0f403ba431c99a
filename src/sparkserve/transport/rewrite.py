"""How Nix makes a built path content-addressed, on bytes. Pure.

The path is named by the hash of its NAR, in which the paths that it refers to are already named so. Its own
hash, which it may hold too, counts as zeros, with its places. So Nix 2.8 has it; Nix 2.26 leaves the places
out and refuses the name that 2.8 gives, and the other way round. So a path that holds its own hash is not
declared content-addressed: it has the name, the same from any builder, and no Nix computes it again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.pins.store import STORE, fixed_path

if TYPE_CHECKING:
    from collections.abc import Mapping

_HASH = 32  # characters of a store path's hash


class Twin(NamedTuple):
    """A content-addressed path: its NAR, and what a binary cache says of it."""

    path: str
    nar: bytes
    narinfo: str

    @property
    def hash(self) -> str:
        """The hash in its path."""
        return _hash(self.path)


def rewrite(path: str, nar: bytes, twins: Mapping[str, str], *, itself: bool) -> Twin:
    """The twin of the built `path` with the contents `nar`.

    `twins` maps what it refers to, other than itself, to what takes its place.
    """
    for old, new in twins.items():
        nar = nar.replace(old.encode(), new.encode())
    own = _hash(path).encode()
    digest = _modulo(nar, own)
    references = sorted(twins.values())
    made = fixed_path(name_of(path), digest, recursive=True, references=references, itself=itself)
    nar = nar.replace(own, _hash(made).encode())
    listed = sorted([*references, made] if itself else references)
    narinfo = {
        "StorePath": made,
        "URL": f"{_hash(made)}.nar",
        "Compression": "none",
        "NarHash": f"sha256:{hashlib.sha256(nar).hexdigest()}",
        "NarSize": str(len(nar)),
        "References": " ".join(each[len(STORE) + 1 :] for each in listed),
    }
    if not itself:
        narinfo["CA"] = f"fixed:r:sha256:{digest}"
    return Twin(made, nar, "".join(f"{key}: {value}\n" for key, value in narinfo.items()))


def name_of(path: str) -> str:
    """A store path's name."""
    return path[len(STORE) + 1 + _HASH + 1 :]


def _hash(path: str) -> str:
    return path[len(STORE) + 1 :][:_HASH]


def _modulo(nar: bytes, own: bytes) -> str:
    """The hash of `nar` with `own` as zeros, and then the places where it was."""
    digest = hashlib.sha256()
    places, end = [], 0
    parts = nar.split(own)
    for part in parts[:-1]:
        digest.update(part)
        digest.update(bytes(_HASH))
        places.append(end + len(part))
        end += len(part) + _HASH
    digest.update(parts[-1])
    for place in places:
        digest.update(f"|{place}".encode())
    return digest.hexdigest()
