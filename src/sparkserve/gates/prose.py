"""Text to read: plain sentences that are all different, from a random stream.

Filler would be too easy: a repeated sentence is one entry of a prefix cache and one row of Engram, and its
next word is known to a model that has lost the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_WHO = (
    "the baker", "a young sailor", "the night guard", "our neighbour", "the old teacher", "a visiting doctor",
    "the librarian", "her cousin", "the train driver", "a retired judge", "the gardener", "his aunt",
    "the mayor", "a tired nurse", "the carpenter", "two students", "the beekeeper", "a quiet tailor",
    "the ferry captain", "the postman", "a travelling painter", "the miller", "the shepherd", "an engineer",
)  # fmt: skip
_DID = (
    "repaired", "painted", "found", "sold", "hid", "carried home", "measured", "borrowed", "photographed",
    "cleaned", "lost", "described", "drew", "bought", "gave away", "examined", "moved", "weighed", "wrapped",
    "forgot", "opened", "collected", "tested", "named",
)  # fmt: skip
_WHAT = (
    "a copper kettle", "the wooden ladder", "three blue bottles", "an old map", "the broken clock",
    "a basket of pears", "the iron gate", "a letter from abroad", "the spare boat", "a bag of barley",
    "the choir's piano", "a box of nails", "the long table", "a pair of boots", "the stone bridge",
    "a jar of honey", "the green curtain", "a book of songs", "the church bell", "a small telescope",
    "the village scales", "a roll of rope", "the winter wheat", "a sack of wool",
)  # fmt: skip
_WHERE = (
    "behind the mill", "near the harbour", "at the market", "under the chapel", "on the north road",
    "beside the lake", "in the school yard", "above the valley", "by the station", "in the empty barn",
    "close to the river", "at the edge of the forest", "in the town hall", "below the lighthouse",
    "on the high meadow", "outside the inn", "across the square", "in the cellar", "next to the well",
    "along the canal",
)  # fmt: skip
_WHEN = (
    "before breakfast", "in early spring", "on a cold morning", "after the storm", "late in the evening",
    "during the fair", "when the rain stopped", "on the first of May", "at noon", "two days later",
    "in the last week of autumn", "just after sunrise", "while the others slept", "on market day",
    "during the long drought", "at the end of the term",
)  # fmt: skip
_SO = (
    "and nobody asked why", "which surprised the whole street", "so the work could go on",
    "although it was not easy", "and wrote it down carefully", "because the winter would be long",
    "but told only a few friends", "and then walked home alone", "as the rules required",
    "while children watched from the wall", "and was thanked for it", "without saying a word",
    "for less than anyone expected", "and kept the receipt", "since there was no other way",
    "and the weather stayed fair",
)  # fmt: skip


def sentences(random: random.Random) -> Iterator[str]:
    """Sentences without end, no two alike."""
    seen = set()
    while True:
        who, when = random.choice(_WHO), random.choice(_WHEN)
        deed = f"{random.choice(_DID)} {random.choice(_WHAT)} {random.choice(_WHERE)}"
        number = random.randrange(2, 900)
        form = random.randrange(4)
        if form == 0:
            text = f"{when}, {who} {deed}, {random.choice(_SO)}"
        elif form == 1:
            text = f"{who} {deed} {when}, {random.choice(_SO)}"
        elif form == 2:
            text = f"in house number {number}, {who} {deed} {when}"
        else:
            text = f"for {number} coins, {who} {deed}, {random.choice(_SO)}"
        if text not in seen:
            seen.add(text)
            yield text[0].upper() + text[1:] + "."


def document(random: random.Random, words: int) -> list[str]:
    """Sentences with `words` words or a few more. SmolLM2 makes about 1.3 tokens of a word."""
    found, count = [], 0
    for sentence in sentences(random):
        if count >= words:
            break
        found.append(sentence)
        count += len(sentence.split())
    return found


def story(random: random.Random, words: int) -> str:
    """A prompt of `words` words or a few more, which any model can go on with."""
    return " ".join([*document(random, words), "Continue this story."])
