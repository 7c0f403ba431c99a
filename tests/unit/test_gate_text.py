# ruff: noqa: RUF001 - letters that look alike are what it is about
"""The detectors of garble and loops: random faults are found, odd but honest texts pass.

Random inputs are new in each run; a failure prints its seed.
"""

from __future__ import annotations

import base64
import random
import secrets
import string
from typing import TYPE_CHECKING

import pytest

from sparkserve.gates import prose, text

if TYPE_CHECKING:
    from collections.abc import Iterator

HANZI = "明天我们去公园散步然后在湖边吃饭因为天气很好大家都很高兴"


@pytest.fixture
def dice() -> Iterator[random.Random]:
    seed = secrets.randbits(32)
    print("seed", seed)
    yield random.Random(seed)  # noqa: S311


def english(dice: random.Random, words: int = 120) -> str:
    return " ".join(prose.document(dice, words))


def insert(dice: random.Random, answer: str, chars: list[str]) -> str:
    for char in chars:
        place = dice.randrange(len(answer))
        answer = answer[:place] + char + answer[place:]
    return answer


@pytest.mark.parametrize(
    ("char", "script"),
    [
        ("a", "LATIN"), ("ß", "LATIN"), ("Ａ", "LATIN"), ("ж", "CYRILLIC"), ("明", "CJK"), ("々", "CJK"),
        ("あ", "HIRAGANA"), ("ｱ", "KATAKANA"), ("한", "HANGUL"), ("α", "GREEK"), ("𠀀", "CJK"),
        ("ع", "ARABIC"), ("7", ""), ("。", ""), ("\ufffd", ""), ("🙂", ""), (" ", ""),
    ],
)  # fmt: skip
def test_the_writing_of_a_letter(char: str, script: str) -> None:
    assert text.script(char) == script


def test_salad_is_found_from_the_fifth_letter_and_the_third_broken_one_on(dice: random.Random) -> None:
    for _ in range(50):
        question, answer = english(dice, 10), english(dice)
        assert text.salad(question, answer) is None
        letters = [dice.choice("错误乱码数据ждщعغ") for _ in range(text.FOREIGN)]
        assert text.salad(question, insert(dice, answer, letters[1:])) is None
        assert text.salad(question, insert(dice, answer, letters)) is not None
        broken = [dice.choice("\ufffd\x00\ue000\x1b") for _ in range(text.BROKEN)]
        assert text.salad(question, insert(dice, answer, broken[1:])) is None
        assert text.salad(question, insert(dice, answer, broken)) == "3 characters that are none"


def test_an_answer_in_the_writing_of_its_question_is_none() -> None:
    assert text.salad("请用中文介绍一下杭州。", HANZI * 3) is None
    assert text.salad("東京について教えてください。", "東京は日本の首都です。とても大きい。ｱｲｳｴｵ") is None
    assert text.salad("Расскажите о Москве.", "Москва — столица России, город на реке.") is None
    assert text.salad("请用中文介绍一下杭州。", "Москва — столица России") is not None
    assert text.salad("Translate 'tomorrow'.", HANZI) is not None


def test_signs_and_pictures_are_no_salad() -> None:
    odd = "E = mc², ∑ α·β ≥ π/2 — «ça» naïve Ångström ½ € 🙂🙂🙂🙂🙂🙂 ░▒▓ →→→ １２３\r\n\tfi"
    assert text.salad("Show me some signs.", odd) is None


def test_a_unit_that_repeats_is_found_whatever_is_around_it(dice: random.Random) -> None:
    for _ in range(50):
        unit = english(dice, 4)[: dice.randrange(21, 60)].strip() + " "
        before, after = english(dice, 30), english(dice, 30)
        found = text.repetition(before + unit * text.TIMES + after)
        assert found is not None
        assert found.times >= text.TIMES
        assert found.unit in unit * 2  # it may begin anywhere in it
        assert text.repetition(before + unit * (text.TIMES - 1) + after) is None
        assert text.repetition(before + after) is None


def test_running_words_are_a_loop_and_other_units_only_where_the_answer_was_cut(dice: random.Random) -> None:
    for _ in range(20):
        unit = english(dice, 5).replace(",", "") + " "
        assert text.loop(unit * 8, cut=False) is not None
        assert text.loop(unit * 8, cut=True) is not None
    for unit in ("!", "0", "AAAA", "| a | b |\n", "the|", "<br>", "\n"):
        endless = "Well: " + unit * 130
        assert text.loop(endless, cut=True) is not None
        assert text.loop(endless, cut=False) is None
        assert text.loop(endless + " and so it ends, which a loop does not.", cut=True) is None


def test_honest_texts_with_much_alike_in_them_pass(dice: random.Random) -> None:
    data = base64.b64encode(dice.randbytes(3000)).decode()
    digits = "".join(dice.choice(string.digits) for _ in range(3000))
    numbers = "\n".join(f"{n}, {n + 1}, {n + 2}" for n in range(400))
    for honest in (data, digits, numbers, "1/3 is 0." + "3" * 400 + "."):
        assert text.loop(honest, cut=False) is None
        assert text.salad("Give me that.", honest) is None
    for honest in (data, digits, numbers):
        assert text.loop(honest, cut=True) is None
    table = "| day | open |\n|---|---|\n" + "| Monday | yes |\n" * 20
    assert text.loop(table, cut=False) is None


def test_tokens_that_stand_still_are_found(dice: random.Random) -> None:
    for _ in range(50):
        words = [f"{word} " for word in english(dice, 80).split()]
        words = [word for place, word in enumerate(words) if not place or words[place - 1] != word]
        assert text.degenerate(words) is None
        place, word = dice.randrange(len(words)), "!"
        assert text.degenerate([*words[:place], *[word] * text.RUN, *words[place:]]) is not None
        assert text.degenerate([*words[:place], *[word] * (text.RUN - 1), *words[place:]]) is None
        unit = dice.sample(string.ascii_letters, dice.randrange(2, 13))
        span = unit * (-(-text.TOKEN_SPAN // len(unit)))
        assert text.degenerate([*words[:place], *span, *words[place:]]) is not None
        assert text.degenerate([*words[:place], *span[: text.TOKEN_SPAN - 1], "?", *words[place:]]) is None


def test_text_that_was_read_in_another_encoding_is_found(dice: random.Random) -> None:
    honest = "„Größe“, «déjà vu», l’été… 20 °C, IRMÃ”, Ærø, Straße” und É“"
    wrong = "".join(char.encode().decode("cp1252") for char in dice.sample("éèüöäß°§’“", 4))
    for _ in range(20):
        question, answer = english(dice, 10), english(dice)
        assert text.salad(question, f"{answer} {honest}") is None
        assert text.salad(question, insert(dice, f"{answer} {honest}", [wrong])) is not None
