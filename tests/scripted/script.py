"""What an engine is told to do. The defaults are a perfect one, as fast as possible."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping  # noqa: TC003 - __main__ reads the annotations
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Script:
    """One engine. The same requests in any order get the same answers and faults."""

    model: str = "scripted"  # decides what is said, as weights do
    seed: int = 0  # decides what goes wrong

    # What it knows: a text in the prompt, and the answer to give then; or a function of the whole prompt.
    # With tools: the calls to make, as names and arguments (JSON). What comes last in the prompt counts.
    answers: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    answer: Callable[[str], str | None] | None = None

    # How it runs. Milliseconds; a step gives each running request its next token.
    step_ms: float = 0.0
    prefill_ms: float = 0.0  # for each 1,000 prompt tokens that the cache does not have; all wait for it
    slots: int = 64  # requests at once; more wait
    page: int = 16  # tokens of a cache page
    context: int = 1_048_576
    draft: int = 0  # tokens drafted in each step: 0 is no speculation
    accept: float = 0.7  # chance of each drafted token; the first one missed ends the step

    # Speed that is not as it should be.
    slow: float = 0.0  # each step takes this many percent longer
    boot: int = 0  # number of this start
    boot_sd: float = 0.0  # steps of one start all take exp(sd x z) as long, z from seed and boot
    noise_sd: float = 0.0  # each step takes exp(sd x z) as long
    stall_s: float = 0.0  # pause in the middle of each answer

    # Content. `share` of the requests get these, drawn by prompt and how often it came; the rest are perfect.
    share: float = 1.0
    garble: tuple[int, int] = (0, 1)  # k of each n tokens of a Latin answer become CJK or U+FFFD
    loop: tuple[int, int] = (0, 0)  # after the third token, u characters come r times
    nan: Literal["", "null", "bang"] = ""  # logprobs are null, or the token "!" comes to the end
    nan_after: int = 4  # tokens before that
    leak: Literal["", "tool", "reasoning"] = ""  # a tag of tool calls or reasoning stands in the content
    break_call: bool = False  # a tool call's arguments lose their last character
    break_json: bool = False  # a structured answer loses its last character
    forget: float | None = None  # planted phrases deeper than this part of the prompt are not found
    wrong_hit: bool = False  # a partial cache hit answers the prompt that filled the cache

    # Numbers. Each candidate's logit moves by `drift` x z (nats); where another overtakes, it is chosen.
    drift: float = 0.0
    drift_when: Literal["always", "hit", "batched", "repeat"] = "always"  # repeat: anew with each repetition
    drift_batch: int = 1  # batched: with at least so many others

    # The connection. Each n-th request; 0 is none.
    drop: Literal["finish", "cut", "event"] = "cut"  # no finish and no [DONE]; connection cut; an event lost
    drop_every: int = 0
    error_every: int = 0
    error_status: int = 500
    usage: bool = True  # False: no answer says its usage

    # /metrics.
    foreign: int = 0  # requests of somebody else that run all the time, with a token each per step
    reset_after: int = 0  # counters start again after so many requests

    def text_dice(self, *parts: object) -> random.Random:
        """Random numbers for a text: a model says the same whatever the seed of its faults."""
        return random.Random(f"{self.model}/{'/'.join(map(str, parts))}")  # noqa: S311 - reproducible, for tests

    def dice(self, *parts: object) -> random.Random:
        """Random numbers for one kind of fault."""
        return random.Random(f"{self.seed}/{'/'.join(map(str, parts))}")  # noqa: S311 - reproducible, for tests
