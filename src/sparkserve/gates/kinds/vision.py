"""vision: the model sees what is in a picture: its colours, how many squares, and digits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.gates.asking import Asker, model_info, randomness
from sparkserve.gates.contract import CannotRunError, Outcome
from sparkserve.gates.pictures import COLOURS, Picture

if TYPE_CHECKING:
    import random

    from sparkserve.gates.contract import Context

title = "Pictures made here are seen: colours, a count of squares, digits."
needs = "a model that reads images"
cost_s = (30, 90)

ROUNDS = (1, 4)  # of each kind
TOKENS = 64
SIDE = 448
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six")


async def run(context: Context) -> Outcome:
    """Ask about random pictures."""
    await _sees(context)
    draw = randomness(context, "vision")
    asked = [make(draw) for _ in range(ROUNDS[not context.quick]) for make in (_colours, _squares, _digits)]
    asker = Asker(context, len(asked))
    findings = []
    for number, (picture, question, rights) in enumerate(asked, 1):
        content = [
            {"type": "image_url", "image_url": {"url": picture.url()}},
            {"type": "text", "text": question},
        ]
        reply = await asker.chat([{"role": "user", "content": content}], TOKENS)
        if reply.error is not None:
            findings.append(f"picture {number}: {reply.error}")
        elif not re.fullmatch(rf"\W*(?:{rights})\W*", reply.text, re.IGNORECASE):
            findings.append(f"picture {number}: {question!r}: {reply.text[:80]!r}, not {rights}")
    return Outcome(
        passed=not findings,
        summary=f"{len(asked)} pictures, {len(findings) or 'none'} not seen right",
        measured={"wrong": len(findings)},
        limits={"wrong": 0},
        findings=tuple(findings),
        prompts=asker.prompts,
    )


async def _sees(context: Context) -> None:
    """Raises `CannotRunError` for a model that reads text only."""
    if (await model_info(context)).get("has_image_understanding") is False:
        raise CannotRunError(f"{context.model} reads text only")


def _colours(draw: random.Random) -> tuple[Picture, str, str]:
    left, right = draw.sample(("red", "green", "blue", "yellow"), 2)
    picture = Picture(SIDE, SIDE, COLOURS[left])
    picture.box(SIDE // 2, 0, SIDE, SIDE, COLOURS[right])
    question = (
        "The picture has two halves of one colour each. Which colour is the left half, and which the right? "
        "Answer with two words and nothing else, the left one first."
    )
    return picture, question, rf"{left}\W+(?:and\W+)?{right}"


def _squares(draw: random.Random) -> tuple[Picture, str, str]:
    count = draw.randint(2, 6)
    picture = Picture(SIDE, SIDE, COLOURS["white"])
    cell = SIDE // 3
    for place in draw.sample(range(9), count):
        picture.box(
            place % 3 * cell + cell // 4, place // 3 * cell + cell // 4, cell // 2, cell // 2, COLOURS["blue"]
        )
    question = "How many blue squares are in the picture? Answer with the number only."
    return picture, question, rf"{count}|{_COUNTS[count]}"


def _digits(draw: random.Random) -> tuple[Picture, str, str]:
    text = "".join(str(draw.randrange(10)) for _ in range(4))
    picture = Picture(SIDE, SIDE, COLOURS["white"])
    picture.number(text, 40, 140, 24, COLOURS["black"])
    question = "Which four digits does the picture show, from left to right? Answer with these digits only."
    return picture, question, r"\s*".join(text)
