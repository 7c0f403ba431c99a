"""lru: one request for a small class of Python, five times; the answer is read as Python, not run."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from sparkserve.gates.asking import Asker
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    from sparkserve.gates.contract import Context

title = "Five answers to one request for an LRU cache are Python with the methods asked for."
needs = "a model that can write twenty lines of Python"
cost_s = (25, 60)

# As the owners of a triangle ask before each bench: 256 tokens, temperature 0, seed 42, five times.
PROMPT = (
    "Write a Python class LRUCache with the methods get(self, key) and put(self, key, value) that uses an "
    "OrderedDict. Give only the code, in one fenced block."
)
TIMES = (1, 5)
TOKENS = 256
SEED = 42
METHODS = {"get": ["self", "key"], "put": ["self", "key", "value"]}

_BLOCK = re.compile(r"```(?:python|py)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


async def run(context: Context) -> Outcome:
    """Ask, and read each answer."""
    times = TIMES[not context.quick]
    asker = Asker(context, times)
    findings, texts = [], []
    for number in range(1, times + 1):
        reply = await asker.chat(PROMPT, TOKENS, seed=SEED)
        wrong = reply.error if reply.error is not None else verdict(reply.text)
        texts.append(reply.text)
        if wrong is not None:
            findings.append(f"answer {number}: {wrong}")
    return Outcome(
        passed=not findings,
        summary=f"{times - len(findings)} of {times} are an LRU cache by their look",
        measured={"wrong": len(findings), "different_answers": len(set(texts))},
        limits={"wrong": 0},
        findings=tuple(findings),
        prompts=asker.prompts,
        details={"answers": texts},
    )


def verdict(answer: str) -> str | None:
    """What is wrong with an answer; None when its first block of Python has the class that was asked for."""
    block = _BLOCK.search(answer)
    if block is None:
        return f"no block of Python: {answer[:80]!r}"
    try:
        tree = ast.parse(block[1])
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"no Python: {error}"
    wrong = [_lacks(node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return None if None in wrong else "; ".join(filter(None, wrong)) or "no class"


def _lacks(node: ast.ClassDef) -> str | None:
    found = {each.name: _arguments(each) for each in node.body if isinstance(each, ast.FunctionDef)}
    for name, arguments in METHODS.items():
        if found.get(name) != arguments:
            said = ", ".join(found[name]) if name in found else "missing"
            return f"{node.name}.{name} is not ({', '.join(arguments)}) but {said}"
    return None


def _arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [each.arg for each in every if each is not None]
