"""Plausible text of any length, in English or Chinese, from a random generator."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS = _list(
    "river engine garden letter bridge window market captain village storm teacher lamp mountain harbor "
    "machine forest signal railway painter harvest kitchen library island compass farmer doctor cloud "
    "journey street castle meadow printer sailor clock valley mirror orchard tower pilot blanket"
)
VERBS = _list(
    "follows carries repairs watches measures crosses remembers paints opens guards finds describes builds "
    "visits reaches studies shelters moves warms answers"
)
ADJECTIVES = _list(
    "quiet old narrow bright distant careful heavy green early patient curious broken golden simple hidden "
    "steady cold gentle tall wooden"
)
LINKS = _list("near behind above below without beside across against beyond under")
STARTS = _list("Later Soon Often Today Sometimes Meanwhile Finally Slowly")
HANZI = "的一是在有人这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小"


def sentence(dice: random.Random) -> str:
    """One English sentence with its leading space."""
    noun, other, third = dice.sample(NOUNS, 3)
    text = f"the {dice.choice(ADJECTIVES)} {noun} {dice.choice(VERBS)} the {other}"
    if dice.random() < 0.6:
        text += f" {dice.choice(LINKS)} the {dice.choice(ADJECTIVES)} {third}"
    if dice.random() < 0.3:
        text = f"{dice.choice(STARTS)}, {text}"
    return f" {text[0].upper()}{text[1:]}."


def chinese(dice: random.Random) -> str:
    """One sentence of Chinese characters; it means nothing."""
    return "".join(dice.sample(HANZI, dice.randrange(8, 20))) + "。"
