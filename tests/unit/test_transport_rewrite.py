"""A built path's content-addressed twin is the one that Nix makes."""

from __future__ import annotations

import base64
import hashlib

from sparkserve.transport.rewrite import name_of, rewrite

# What `nix store make-content-addressed` of Nix 2.8 made of a file that holds: TOP LOWER TOP.
TOP = "/nix/store/86kbxl8j91ax2ikj51975sc63zxjkx7w-top"
LOWER = "/nix/store/6fqpwa9nswm6ry0w87ic23vqx2jrkpir-lower"
TOP_TWIN = "/nix/store/figyxg54js40djfpiaqrnb554v0d6y2g-top"
LOWER_TWIN = "/nix/store/dmfyc5c5lswwg936syqdzx8j6fph46b4-lower"
NAR_HASH = base64.b64decode("jllwNpTMPsyI+FaTlD+Zfo/ReoAFQy51Eh6INYN+apg=").hex()


def nar(text: str) -> bytes:
    """The NAR of a file."""
    words = ["nix-archive-1", "(", "type", "regular", "contents", text, ")"]
    made = b""
    for word in words:
        size = len(word)
        made += size.to_bytes(8, "little") + word.encode() + bytes(-size % 8)
    return made


def test_the_twin_is_nix_s() -> None:
    twin = rewrite(TOP, nar(f"{TOP} {LOWER} {TOP}\n"), {LOWER: LOWER_TWIN}, itself=True)
    assert (twin.path, twin.hash, name_of(twin.path)) == (TOP_TWIN, TOP_TWIN[11:43], "top")
    assert twin.nar == nar(f"{TOP_TWIN} {LOWER_TWIN} {TOP_TWIN}\n")
    assert hashlib.sha256(twin.nar).hexdigest() == NAR_HASH
    assert dict(line.split(": ", 1) for line in twin.narinfo.splitlines()) == {
        "StorePath": TOP_TWIN,
        "URL": f"{twin.hash}.nar",
        "Compression": "none",
        "NarHash": f"sha256:{NAR_HASH}",
        "NarSize": "264",
        "References": f"{LOWER_TWIN[11:]} {TOP_TWIN[11:]}",
    }


def test_only_what_does_not_hold_its_own_hash_is_declared() -> None:
    """Nix versions disagree on the hash of the others."""
    plain = rewrite(TOP, nar("text"), {}, itself=False)
    assert f"CA: fixed:r:sha256:{hashlib.sha256(nar('text')).hexdigest()}\n" in plain.narinfo
    assert "CA:" not in rewrite(TOP, nar(f"in {TOP}"), {}, itself=True).narinfo


def test_one_place_more_or_less_is_another_path() -> None:
    """Zeros in the contents are not taken for the path's own hash."""
    mine = rewrite(TOP, nar(f"{TOP} end"), {}, itself=True)
    zeros = rewrite(TOP, nar(f"{TOP} end").replace(TOP[11:43].encode(), bytes(32)), {}, itself=True)
    assert mine.path != zeros.path


def test_the_recipe_s_path_does_not_matter() -> None:
    other = TOP.replace("86kb", "96kb")
    one, two = (rewrite(path, nar(f"in {path}"), {}, itself=True) for path in (TOP, other))
    assert one == two
