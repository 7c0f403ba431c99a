"""The texts that kld asks two stacks to continue: made by a program, the same for ever, in no book."""

from __future__ import annotations

import json
import random

from sparkserve.gates import prose

# Tokens of the long texts, as owners' reference runs have them: around and beyond prefill chunks of 8,192
# and 16,384, and one at an odd length.
LONG = (16_500, 18_000, 24_003, 40_001)
SHORT = (1000, 1180, 1361, 1540, 1725, 1900, 2083, 2260, 2441, 2620, 2805, 2990)
QUICK_LONG, QUICK_SHORT = (2_000, 3_001), SHORT[:4]
_TOWNS = ("Brekke", "Ulvik", "Halden", "Moss", "Voss", "Alta", "Narvik", "Hamar", "Larvik", "Molde")


def fitted(sizes: tuple[int, ...], room: int) -> list[int]:
    """`sizes` in tokens, made shorter in proportion when the longest has more than `room`."""
    most = max(sizes)
    return list(sizes) if most <= room else [size * room // most for size in sizes]


def text(number: int, tokens: int) -> str:
    """Text `number`, with at least `tokens` tokens in the tokenizers of the field."""
    draw = random.Random(f"panel/{number}")  # noqa: S311 - to be repeated
    make = (_story, _records, _ledger, _code)[number % 4]
    pieces: list[str] = []
    size = 0
    # They have three to five characters a token.
    while size < 6 * tokens:
        pieces.append(make(draw, len(pieces)))
        size += len(pieces[-1]) + 1
    return "\n".join(pieces)


def _story(draw: random.Random, place: int) -> str:
    return " ".join(prose.document(draw, 60))


def _records(draw: random.Random, place: int) -> str:
    record = {
        "id": 1000 + 7 * place,
        "town": draw.choice(_TOWNS),
        "depth_m": round(draw.uniform(2, 90), 1),
        "open": draw.random() < 0.7,
        "boats": sorted(draw.sample(range(10, 99), 3)),
    }
    return json.dumps(record)


def _ledger(draw: random.Random, place: int) -> str:
    return (
        f"| {place + 1} | {draw.choice(_TOWNS)} to {draw.choice(_TOWNS)} | {draw.randint(4, 40)} crates | "
        f"{draw.randint(100, 9000) / 100:.2f} |"
    )


def _code(draw: random.Random, place: int) -> str:
    name = f"{draw.choice(('sort', 'count', 'merge', 'load', 'check'))}_{draw.choice(_TOWNS).lower()}_{place}"
    low, high = sorted(draw.sample(range(1, 200), 2))
    return (
        f"def {name}(values: list[int]) -> int:\n"
        f'    """The sum of what lies between {low} and {high}."""\n'
        f"    return sum(value for value in values if {low} <= value < {high})\n"
    )
