"""What the bench sends: distinct, by seed, of exactly the tokens asked for, and what it says of its texts."""

from __future__ import annotations

import asyncio
import platform
import random
import re
from typing import TYPE_CHECKING

import click
import pytest

from sparkserve.bench.workloads import cases, texts
from sparkserve.bench.workloads.fit import fit, sha256
from sparkserve.cli.measuring import STREAMS

if TYPE_CHECKING:
    from sparkserve.bench.workloads.texts import Kind


def test_the_command_takes_no_more_streams_than_there_are_prompts() -> None:
    most = cases.LARGEST_WAVE
    assert STREAMS.convert(f"{most}", None, None) == (most,)
    with pytest.raises(click.BadParameter):
        STREAMS.convert(f"{most + 1}", None, None)


@pytest.mark.parametrize("case", cases.CASES)
def test_no_two_streams_have_alike_prompts(case: str) -> None:
    seed = random.SystemRandom().randrange(2**31)
    drawn = cases.prompts(case, seed)
    assert len(drawn) >= cases.LARGEST_WAVE
    # Not only by a number or a letter at the end: the words differ.
    words = {" ".join(re.findall(r"[a-z]+", prompt.lower())) for prompt in drawn}
    assert len(words) == len(drawn), f"seed {seed}"
    for streams in (1, 2, 4, 8, 16, cases.LARGEST_WAVE):
        for number in (-1, 0, 1, 7):
            wave = cases.wave(drawn, streams, number)
            assert len(set(wave)) == streams, f"seed {seed}, round {number}"


def test_the_seed_draws_the_prompts() -> None:
    assert cases.prompts("prose", 3) == cases.prompts("prose", 3)
    assert cases.prompts("prose", 3) != cases.prompts("prose", 4)
    assert cases.prompts("prose", 3) != cases.prompts("code", 3)


def test_rounds_take_other_texts() -> None:
    drawn = cases.prompts("chat", 1)
    waves = [tuple(cases.wave(drawn, 4, number)) for number in range(8)]
    assert len({prompt for wave in waves for prompt in wave}) == 32


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("real", 0.9, 1.0), ("novel", 0.9, 1.0), ("filler", 0.0, 0.05)]
)
def test_distinct_trigrams_tell_the_kinds_apart(kind: Kind, least: float, most: float) -> None:
    """Issue I04: a bench's text has a ratio above 0.9, and filler has not."""
    ratio = texts.distinct(texts.text(kind, 130_000, "7"))
    assert least < ratio <= most


def test_texts_are_drawn_by_seed() -> None:
    for kind in texts.KINDS:
        assert texts.text(kind, 5000, "1") == texts.text(kind, 5000, "1")
        assert texts.text(kind, 5000, "1") != texts.text(kind, 5000, "2")


def test_real_texts_are_the_same_on_another_processor() -> None:
    built_for = f"{platform.machine()}-linux"
    assert [path for path in texts._sources() if built_for in path.name + path.read_text()] == []


def test_distinct_of_a_text_that_repeats() -> None:
    # "a b c a b c a b c": seven trigrams, three of them different.
    assert texts.distinct("a b c " * 3) == pytest.approx(3 / 7)


@pytest.mark.parametrize("kind", texts.KINDS)
@pytest.mark.parametrize("piece", [r"\w{1,5}|[^\w\s]| {2,}", r"\S+"])
def test_prompts_have_exactly_the_tokens(kind: Kind, piece: str) -> None:
    """By tokenizers of short pieces, and of whole words: source then has ten characters a token."""
    asked = 0

    async def count(text: str) -> int:
        nonlocal asked
        asked += 1
        return 1 + len(re.findall(piece, text))

    drawn = random.SystemRandom().randrange(300, 6000)
    found = asyncio.run(fit(kind, drawn, f"{drawn}", count))
    assert found.tokens == drawn, f"{drawn} tokens"
    assert asyncio.run(count(found.text)) == drawn
    assert asked <= 25
    assert found.sha256 == sha256(found.text)


def test_the_first_line_is_of_this_seed_alone() -> None:
    async def count(text: str) -> int:
        return len(text)

    first = {asyncio.run(fit("filler", 200, f"{seed}", count)).text.splitlines()[0] for seed in range(50)}
    assert len(first) == 50


def test_a_text_that_cannot_be_so_long_says_how_long_it_is() -> None:
    async def count(text: str) -> int:
        return 1 + 2 * (len(text) // 3)  # only odd counts

    found = asyncio.run(fit("novel", 500, "1", count))
    assert found.tokens == 499
