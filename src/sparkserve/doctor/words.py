"""What stays of a process's command line: any word of it may be a secret, and checks ask for very few."""

from __future__ import annotations

import re

from sparkserve.doctor.redact import HIDDEN, redact

ENGINES = re.compile(r"(?i)sparkserve_launch|sglang|vllm|llama-server|trtllm|tritonserver")
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]{1,200}|sglang::\w{1,60}(::\w{1,60})?")
_OPTION = re.compile(r"(--[a-z][a-z0-9-]{1,40})(=.*)?|-[A-Za-z]", re.S)
_PERIOD = re.compile(r"(?:-lms|-l|--loop-ms|--loop)(?:=?\d{1,6})?|dmon|pmon")


def planned(plan: object) -> frozenset[str]:
    """The words of a plan that may stay."""
    engine = plan.get("engine") if isinstance(plan, dict) else None
    words = engine.get("args") if isinstance(engine, dict) else None
    return frozenset(map(str, words)) if isinstance(words, list) else frozenset()


def kept(text: str, ours: frozenset[str]) -> str:
    """The words of /proc/PID/cmdline, `***` for each that no check needs.

    The program stays. Of an engine also the names of its options and the plan's own words, of nvidia-smi how
    often it looks.
    """
    words = [word for word in text.split("\0") if word]
    engine = ENGINES.search(" ".join(words[:4])) is not None
    poll = bool(words) and words[0].rpartition("/")[2] == "nvidia-smi"
    shown = []
    for place, word in enumerate(words):
        named = ENGINES.search(word) if place < 4 else None
        if place == 0 or named:
            shown.append(word if _PROGRAM.fullmatch(word) else named[0] if named else HIDDEN)
        elif poll:
            period = _PERIOD.fullmatch(word) or (
                _PERIOD.fullmatch(words[place - 1]) and re.fullmatch(r"\d{1,6}", word)
            )
            shown.append(word if period else HIDDEN)
        elif engine and word in ours:
            shown.append(word)
        elif engine and (option := _OPTION.fullmatch(word)):
            shown.append(f"{option[1]}={HIDDEN}" if option[2] else word)
        else:
            shown.append(HIDDEN)
    # Hidden words in a row are one: not even their number is needed.
    shown = [
        word for place, word in enumerate(shown) if word != HIDDEN or shown[place - 1 : place] != [HIDDEN]
    ]
    return redact("".join(f"{word}\0" for word in shown))
