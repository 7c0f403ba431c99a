"""Runs one function of a model's code, inside the sandbox: `sandbox.py` passes this file's text to Python.

stdin: JSON with source, function, inputs (a list of argument lists), nonce, memory_bytes, cpu_s. fd 1: one
JSON line for each input, with the nonce. What the code prints goes to fd 2. Only the standard library.
"""

import json
import os
import resource
import sys
import types

given = json.load(sys.stdin)
# First, and hard: nothing below can raise a limit again. No file may grow, so nothing can be written.
for what, most in (
    (resource.RLIMIT_AS, given["memory_bytes"]),
    (resource.RLIMIT_CPU, given["cpu_s"]),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NOFILE, 16),
    (resource.RLIMIT_CORE, 0),
):
    resource.setrlimit(what, (most, most))
channel = os.dup(1)
os.dup2(2, 1)


def tell(**line: object) -> None:
    """One result to the parent. Raises TypeError for a value that is not JSON."""
    data = json.dumps({"nonce": given["nonce"], **line}).encode() + b"\n"
    while data:
        data = data[os.write(channel, data) :]


# A module of its own, as dataclasses and the like look themselves up in sys.modules.
answer = types.ModuleType("answer")
sys.modules["answer"] = answer
try:
    exec(compile(given["source"], "answer.py", "exec"), answer.__dict__)  # noqa: S102 - what the sandbox is for
    function = getattr(answer, given["function"])
except BaseException as error:
    tell(failed=f"{type(error).__name__}: {error}"[:300])
    sys.exit()
for arguments in given["inputs"]:
    try:
        tell(value=function(*arguments))
    except BaseException as error:
        tell(failed=f"{type(error).__name__}: {error}"[:300])
