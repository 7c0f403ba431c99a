"""vision: pictures are what their questions say, and answers are read right."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import struct
import zlib
from typing import Any

import pytest
from gate_world import run
from scripted import Script

from sparkserve.client.reply import Reply
from sparkserve.gates.contract import CannotRunError, Context, Outcome
from sparkserve.gates.kinds import vision
from sparkserve.gates.pictures import COLOURS, DIGITS, Picture


def points(png: bytes) -> list[list[tuple[int, int, int]]]:
    """What a reader of PNG sees; it knows eight bits a channel and no filter."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, data, size = 8, b"", (0, 0)
    while place < len(png):
        (length,) = struct.unpack_from(">I", png, place)
        name, body = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", png, place + 8 + length) == (zlib.crc32(name + body),)
        if name == b"IHDR":
            size = struct.unpack(">II", body[:8])
        data += body if name == b"IDAT" else b""
        place += length + 12
    raw, (width, height) = zlib.decompress(data), size
    rows = [raw[y * (3 * width + 1) :][: 3 * width + 1] for y in range(height)]
    assert all(row[0] == 0 for row in rows)
    assert all(len(row) == 3 * width + 1 for row in rows)
    return [list(zip(row[1::3], row[2::3], row[3::3], strict=True)) for row in rows]


def test_what_is_drawn_is_in_the_file() -> None:
    picture = Picture(40, 30, COLOURS["white"])
    picture.box(5, 6, 7, 8, COLOURS["red"])
    picture.box(38, 28, 99, 99, COLOURS["blue"])
    seen = points(picture.png())
    assert len(seen) == 30 and {len(row) for row in seen} == {40}
    assert sum(row.count(COLOURS["red"]) for row in seen) == 56
    assert sum(row.count(COLOURS["blue"]) for row in seen) == 4
    assert seen[6][5] == COLOURS["red"] and seen[5][5] == COLOURS["white"]


def test_ten_different_digits() -> None:
    assert len(set(DIGITS)) == 10
    picture = Picture(12, 12, COLOURS["white"])
    picture.number("7", 2, 3, 2, COLOURS["black"])
    rows = [
        "".join("#" if point == COLOURS["black"] else "." for point in row) for row in points(picture.png())
    ]
    assert rows[3:9:2] == ["..######....", "......##....", "......##...."]


class Sees:
    """A client whose model looks at the picture, with an error in each `wrong`-th answer."""

    endpoint = "http://127.0.0.1:1"

    def __init__(self, wrong: int = 0) -> None:
        self._wrong, self._asked = wrong, 0

    async def get(self, path: str, *, timeout_s: float = 10.0) -> tuple[int, bytes]:
        return 200, json.dumps({"has_image_understanding": True}).encode()

    async def ask(self, path: str, body: dict[str, Any], *, timeout_s: float = 300.0) -> Reply:
        self._asked += 1
        image, question = body["messages"][0]["content"]
        seen = points(base64.b64decode(image["image_url"]["url"].partition(",")[2]))
        text = _look(seen, question["text"])
        if self._wrong and self._asked % self._wrong == 0:
            text = "7 red dogs"
        return Reply(200, None, 0.1, text=text)


def _look(seen: list[list[tuple[int, int, int]]], question: str) -> str:
    names = {colour: name for name, colour in COLOURS.items()}
    if "halves" in question:
        return f"{names[seen[9][9]].title()}, {names[seen[9][-9]]}."
    if "squares" in question:
        area = sum(row.count(COLOURS["blue"]) for row in seen)
        return f"**{area // (448 // 3 // 2) ** 2}**"
    found = ""
    for place in range(4):
        middles = [[seen[152 + 24 * y][52 + 24 * (4 * place + x)] for x in range(3)] for y in range(5)]
        bits = tuple(sum((row[x] == COLOURS["black"]) << 2 - x for x in range(3)) for row in middles)
        found += str(list(map(tuple, DIGITS)).index(bits))
    return found


def judged(client: Any, *, quick: bool) -> Outcome:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    return asyncio.run(vision.run(Context(client, "m", quick, seed)))


@pytest.mark.parametrize("quick", [True, False])
def test_who_sees_passes(quick: bool) -> None:
    outcome = judged(Sees(), quick=quick)
    assert outcome.passed, outcome.findings
    assert len(outcome.prompts) == (3 if quick else 12)


def test_one_wrong_answer_of_twelve_is_seen() -> None:
    outcome = judged(Sees(wrong=12), quick=False)
    assert not outcome.passed and outcome.measured["wrong"] == 1


def test_a_model_of_text_cannot_be_judged() -> None:
    with pytest.raises(CannotRunError, match="reads text only"):
        run("vision", Script())
