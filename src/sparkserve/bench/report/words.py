"""Figures and units as people read them, and what a report must say before anybody reads a figure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.fleet import svg

if TYPE_CHECKING:
    from sparkserve.bench.report.model import Arm, Figure, Row


class Named(NamedTuple):
    """A metric's name and unit in a report, and what it is."""

    name: str
    unit: str
    meaning: str


METRIC = {
    "decode_window_tps": Named(
        "decode",
        "tok/s",
        "tokens after each stream's first, from the earliest first piece to the latest last one",
    ),
    "tps": Named("whole", "tok/s", "completion tokens over the whole time, the first token's included"),
    "derived_tps": Named("derived", "tok/s", "tokens a step x streams / step"),
    "stream_tps": Named("per stream", "tok/s", "mean over the streams"),
    "prefill_tps": Named("prefill", "tok/s", "prompt tokens over the time to the first token"),
    "step_ms": Named("step", "ms", "one pass of the engine"),
    "tokens_per_step": Named("tokens a step", "", "for each stream: one, and the drafts that were accepted"),
    "accepted_per_verified": Named("accepted", "of 1", "drafts accepted of drafts verified"),
    "hit_rate": Named("cache hits", "of 1", "prompt tokens that were in the prefix cache"),
    "ttft_s": Named("first token", "s", "from the request to the first piece of the answer"),
    "itl_p50_ms": Named("ITL p50", "ms", "time between tokens, from usage counts: half are faster"),
    "itl_p90_ms": Named("ITL p90", "ms", "nine of ten are faster"),
    "itl_p99_ms": Named("ITL p99", "ms", "99 of 100 are faster"),
}
DASH = "\N{EN DASH}"
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PREFILL = re.compile(r"(?:prefill|real|novel|filler)-([0-9]{1,9})")


def number(value: float) -> str:
    """Four significant digits, which is more than any run resolves."""
    size = abs(value)
    if size >= 1e6 or 0 < size < 0.001:
        return f"{value:.3g}"
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3
    return f"{value:,.{digits}f}"


def span(figure: Figure) -> str:
    """The interval, or what there is in its place."""
    if figure.low is None or figure.high is None:
        return "one sample" if figure.samples == 1 else "no interval"
    between = DASH if figure.low >= 0 else " to "  # a dash and a minus are hard to tell apart
    said = f"{number(figure.low)}{between}{number(figure.high)}"
    return said if figure.over == "boots" else f"{said} in one boot"


def plain(text: str) -> str:
    """`text` without controls, also those that turn the direction of what follows them."""
    return _TURNS.sub("\N{REPLACEMENT CHARACTER}", svg.clean(text))


def count(number: int, word: str) -> str:
    """`1 boot`, `3 boots`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def length(case: str) -> int | None:
    """The prompt's tokens of a prefill's case, such as real-32768; None for a case of another kind."""
    found = _PREFILL.fullmatch(case)
    return int(found[1]) if found else None


def tokens(count: int) -> str:
    """32K is 32768 tokens; 500000 is 500k."""
    if count >= 1024 and count % 1024 == 0:
        return f"{count >> 20}M" if count % (1 << 20) == 0 else f"{count >> 10}K"
    return f"{count // 1000}k" if count >= 1000 and count % 1000 == 0 else str(count)


def warnings(arms: tuple[Arm, ...]) -> tuple[str, ...]:
    """What a reader must know first, by arm; an arm is named when there are several."""
    said = []
    for arm in arms:
        prefix = f"{arm.name}: " if len(arms) > 1 else ""
        said += [prefix + text for text in _about(arm)]
    if len(arms) > 1:
        said.append(
            "Arms side by side are no verdict: sparkserve bench compare says whether they differ by chance."
        )
    return tuple(said)


def _about(arm: Arm) -> list[str]:
    said = []
    if not arm.boots:
        return ["No boot was measured. There is nothing to report."]
    if len(arm.boots) == 1:
        said.append(
            "Every figure rests on one boot. An owner of Sparks saw boots of one configuration differ by "
            "3 %, and intervals here show only how this boot's samples vary. Measure three boots or more "
            "before you decide."
        )
    elif few := [row for row in arm.rows if any(len(f.boots) == 1 for f in row.figures.values())]:
        said.append(f"{_names(few)}: figures of one boot; their intervals show how its samples vary.")
    if len({start.subject.fleet_id for start in arm.boots}) > 1:
        said.append("The boots are of different fleet ids. Their mean is of no fleet.")
    if failed := [row for row in arm.rows if row.failed]:
        total = count(sum(row.failed for row in failed), "request")
        said.append(f"{total} failed, at {_names(failed)}.")
    if empty := [row for row in arm.rows if not row.figures]:
        said.append(f"No figure at {_names(empty)}.")
    if shared := [row for row in arm.rows if row.shared]:
        said.append(
            f"Streams share a prompt at {_names(shared)}. They then read fewer experts than users' requests "
            "do, and several streams look too fast."
        )
    if filler := [row for row in arm.rows if "filler" in row.text]:
        said.append(f"Filler text at {_names(filler)}. It keeps few Engram rows hot and overstates prefill.")
    if discarded := sum(len(start.discarded) for start in arm.boots):
        said.append(f"{count(discarded, 'sample')} discarded and measured again; the reasons are below.")
    noted = sum(bool(start.notes) for start in arm.boots)
    return said + ([f"{count(noted, 'boot')} with notes, below."] if noted else [])


def _names(rows: list[Row]) -> str:
    """Up to four names, and how many more."""
    shown = ", ".join(row.name for row in rows[:4])
    return shown + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")
