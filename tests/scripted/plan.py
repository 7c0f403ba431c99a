"""The tokens of one answer in order, with the faults of its content."""

from __future__ import annotations

from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Literal, NamedTuple

from scripted import skills, tokens, words

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

    from scripted.request import Request
    from scripted.script import Script

_BAR = "\uff5c"  # DeepSeek's markup has the full-width bar
_TAGS = {
    "tool": f'<{_BAR}DSML{_BAR}tool_calls><{_BAR}DSML{_BAR}invoke name="search">',
    "reasoning": "</think>",
}
_HANZI = "错误乱码数据损坏信号"

Where = Literal["reasoning", "content", "call", "end"]


class Piece(NamedTuple):
    """One token. `call` numbers the calls of tools; a call's first piece has its name."""

    id: int
    text: str
    where: Where
    call: int = 0
    name: str = ""


def plan(
    script: Script, request: Request, prompt: str, dice: random.Random, spoilt: random.Random | None
) -> Iterator[Piece]:
    """All tokens to the end that the model wants, past it where it may not end. `spoilt` draws faults."""
    answer = skills.answer(script, request, prompt, dice)
    text = answer.text
    if spoilt is not None and script.break_json and answer.structured:
        text = text.rstrip()[:-1]
    content = _pieces(text, "content")
    if spoilt is not None and not answer.calls:
        content = _spoil(script, content, spoilt, latin=_is_latin(text))
    calls = []
    for number, (name, arguments) in enumerate(answer.calls):
        said = arguments[:-1] if spoilt is not None and script.break_call else arguments
        parts = tokens.pieces(said) or [""]
        calls.append(Piece(tokens.identify(parts[0]), parts[0], "call", number, name))
        calls += [Piece(tokens.identify(part), part, "call", number) for part in parts[1:]]
    wanted = chain(_pieces(answer.reasoning, "reasoning"), calls, content)
    if spoilt is not None and script.nan == "bang":
        wanted = chain(islice(wanted, script.nan_after), repeat(Piece(tokens.identify("!"), "!", "content")))
    return _end(request, wanted, dice)


def _end(request: Request, wanted: Iterator[Piece], dice: random.Random) -> Iterator[Piece]:
    count = 0
    for piece in wanted:
        count += 1
        yield piece
    filler = (piece for _ in repeat(None) for piece in _pieces(words.sentence(dice), "content"))
    while request.ignore_eos or count < request.min_tokens:
        count += 1
        yield next(filler)
    while True:  # drift may choose another token than the end
        yield Piece(tokens.EOS, "", "end")
        yield from _pieces(words.sentence(dice), "content")


def _pieces(text: str, where: Where) -> Iterator[Piece]:
    return (Piece(tokens.identify(part), part, where) for part in tokens.pieces(text))


def _spoil(script: Script, content: Iterable[Piece], dice: random.Random, *, latin: bool) -> Iterator[Piece]:
    pieces = list(content)
    size, times = script.loop
    if size and times:
        unit = ""
        while len(unit) < size:
            unit += words.sentence(dice)
        pieces[3:] = _pieces(unit[:size] * times, "content")
    if script.leak:
        pieces[2:2] = _pieces(_TAGS[script.leak], "content")
    wrong, among = script.garble
    if wrong and latin:
        for start in range(0, len(pieces), among):
            for place in dice.sample(range(among), wrong):
                if start + place < len(pieces):
                    char = dice.choice(_HANZI) if dice.random() < 0.5 else "\ufffd"
                    pieces[start + place] = Piece(tokens.identify(char), char, "content")
    return iter(pieces)


def _is_latin(text: str) -> bool:
    return all(char < "\u2e80" for char in text)
