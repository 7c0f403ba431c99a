"""The cases of decode: each a kind of text that a model drafts and writes at a speed of its own.

A prompt is a form of the case with a subject in it. Streams of one wave never share a prompt: with one for
all, a deterministic engine routes every stream through the same experts, reads fewer of them, and shows a
speed that no users get (516 in place of 318 tokens/s at 16 streams, owen's r6d against r6). A number at the
end of equal prompts would not help: their answers are alike.
"""

from __future__ import annotations

import random
from typing import NamedTuple

LARGEST_WAVE = 32  # distinct prompts that each case has at least


class Case(NamedTuple):
    """Prompts are all `forms` with all `subjects`; `title` says what they ask for."""

    title: str
    forms: tuple[str, ...]
    subjects: tuple[str, ...]


_THINGS = (
    *("a tide mill", "the night train", "a glassblower's workshop", "winter wheat", "the harbour pilot"),
    *("a mountain hut", "the town archive", "a canal lock", "beekeeping", "a salt marsh", "the piano tuner"),
    *("an orchard in spring", "the last ferry", "a bread oven", "a weather station", "the clock tower"),
)
_PROGRAMS = (
    *("a bounded queue for threads", "a parser of INI files", "a trie of words", "a rate limiter"),
    *("Dijkstra's shortest paths", "a ring buffer of bytes", "a diff of two lists", "an interval tree"),
    *("a cache that forgets by age", "a topological sort", "run-length coding", "a union-find structure"),
    *("a sparse matrix product", "a CSV reader with quotes", "a priority queue", "a Bloom filter"),
)
_RECORDS = (
    *("books of a library", "trains of a timetable", "plants of a nursery", "players of a chess club"),
    *("parcels of a depot", "rooms of a hotel", "recipes of a canteen", "ships in a port"),
    *("paintings of a museum", "bicycles for hire", "concerts of a season", "stars of a catalogue"),
    *("tools of a workshop", "courses of a school", "lakes of a country", "machines of a factory"),
)
_QUESTIONS = (
    *("why the sky is red at dusk", "how a lock keeps water back", "why bread rises", "how vaccines work"),
    *("why ice floats", "how a bicycle stays upright", "how glue sticks", "why leaves fall in autumn"),
    *("how a mirror swaps sides", "why the sea is salty", "how a fridge cools", "how money loses value"),
    *("how a hash table finds a key", "why metals conduct", "how birds navigate", "how a transistor works"),
)
_SUMS = (
    *("two pumps that fill a tank of 840 litres", "a train of 180 m in a tunnel of 1,260 m"),
    *("a loan of 12,000 at 4 % over three years", "three dice and a sum of at least 14"),
    *("a ladder of 5 m against a wall", "mixing 30 % and 70 % acid into 8 litres of 45 %"),
    *("seats of a theatre with 24 rows", "a car that slows from 108 km/h in 75 m"),
    *("the ages of a mother and two children", "a field of 2.4 hectares and 310 m of fence"),
    *("shares of an inheritance in the ratio 5:3:2", "the hands of a clock after half past four"),
    *("a shop that sells at 15 % off and 19 % tax", "handshakes among 23 guests"),
    *("a ball that falls from 45 m", "a bus every 12 minutes and one every 18"),
)

CASES: dict[str, Case] = {
    "prose": Case(
        "plain paragraphs",
        ("Describe {} to somebody who has never seen one. Write paragraphs, without lists or headings.",
         "Write an article of several paragraphs about {} for a weekend newspaper. No lists, no headings."),
        _THINGS,
    ),
    "code": Case(
        "Python source and nothing else",
        ("Write {} in Python, with type hints and docstrings. Answer with source code only.",
         "Write a Python module with {} and its unit tests. Answer with source code only."),
        _PROGRAMS,
    ),
    "json": Case(
        "a JSON array of objects",
        ("Invent a JSON array of 12 {}, each an object with 8 keys of fitting types. Print only JSON.",
         "Print {} as one JSON array. Each object has an id, a name, two numbers, a date and a list."),
        _RECORDS,
    ),
    "structured": Case(
        "tables, YAML and SQL",
        ("Make a Markdown table of 15 {} with six columns, then the same rows as YAML. Nothing else.",
         "Write the SQL for {}: CREATE TABLE, then 15 INSERT statements with invented values. SQL only."),
        _RECORDS,
    ),
    "chat": Case(
        "an answer to a person",
        ("Hi! My daughter asked me {}, and I had no good answer. What should I tell her?",
         "Quick question for a pub quiz: {}? Please say it the way you would to friends."),
        _QUESTIONS,
    ),
    "essay": Case(
        "an argued text",
        ("Write an essay on what {} teaches about patience. Argue both sides before you decide.",
         "Argue in an essay that {} deserves public money, answer two objections, and conclude."),
        _THINGS,
    ),
    "story": Case(
        "a story with speech",
        ("Tell a story that begins at {} and ends with an apology. Let people speak.",
         "Write a ghost story around {}. It has a narrator who is wrong about one thing."),
        _THINGS,
    ),
    "tasks": Case(
        "a change to code, with reasons",
        ("A colleague's version of {} fails on empty input. Show the likely mistake, the fix and a test.",
         "Review a design for {}: list what can go wrong, then write the corrected Python."),
        _PROGRAMS,
    ),
    "rows": Case(
        "lines of one form",
        ("List 40 invented {}, one a line, as: number; name; place; year; price.",
         "Print 40 lines of a log about {}: date, time, level, and a short message."),
        _RECORDS,
    ),
    "math": Case(
        "a worked calculation",
        ("Set and solve a problem about {}. Show every step and check the result.",
         "Explain to a pupil how to calculate with {}: the equation, each step, and a second way."),
        _SUMS,
    ),
    "explain": Case(
        "an explanation in steps",
        ("Explain {} in numbered steps, then name what people commonly get wrong.",
         "Explain {} three times: to a child, to a student and to an engineer."),
        _QUESTIONS,
    ),
}  # fmt: skip


def prompts(case: str, seed: int) -> tuple[str, ...]:
    """All prompts of `case`, a key of CASES, in the order of `seed`; no two are alike."""
    found = [form.format(subject) for form in CASES[case].forms for subject in CASES[case].subjects]
    random.Random(f"{case}:{seed}").shuffle(found)  # noqa: S311 - drawn, not secret
    return tuple(found)


def wave(drawn: tuple[str, ...], streams: int, number: int) -> list[str]:
    """The prompts of round `number`: the next `streams` of `drawn`, from the beginning after the last.

    Other rounds have other prompts so that an interval covers how texts differ (about 5 % in tokens/s with
    speculation, owen 12.6), not only how one text repeats.
    """
    first = number * streams
    return [drawn[(first + stream) % len(drawn)] for stream in range(streams)]
