"""Waits until an engine really serves: /health answers early, so only a finished request counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sparkserve.engine import chat, process, sockets
from sparkserve.engine.log import Progress, tail
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.engine.record import NodeFiles, Run

POLL_S = 0.25
# The first request of a cold engine is the slow one (20 s seen at TP=2 on two cores).
CANARY_S = 60.0


def wait(
    run: Run, files: NodeFiles, *, timeout_s: float, detail: Callable[[str], None] = lambda text: None
) -> Run:
    """Wait until `run` answers /health and one chat completion; returns it with its canary, also recorded.

    `detail` is told how far the start has come. Raises at once `ENGINE.START` when the process ends,
    `HOST.PORT` when another process listens in its place, and `ENGINE.READY` when it wants credentials or
    after `timeout_s` seconds.
    """
    begin = time.monotonic()
    progress = Progress(files.log)
    problem = ""
    while (passed := time.monotonic() - begin) < timeout_s:
        if not run.alive():
            raise process.failed(files, after=time.time() - run.started_at)
        detail(f"{progress.look()}, {passed:.0f} s")
        try:
            if not sockets.listens(run):
                raise chat.ChatError("nothing listens yet")
            chat.health(run.endpoint, timeout_s=min(5.0, timeout_s - passed))
            detail(f"first request, {passed:.0f} s")
            limit = min(CANARY_S, timeout_s - passed)
            answer = chat.complete(run.endpoint, run.model, "Say hello.", max_tokens=4, timeout_s=limit)
            return files.answered(run, answer.seconds)
        except chat.RefusedError as error:
            raise SparkserveError(
                "ENGINE.READY",
                expected="an endpoint that answers without credentials",
                found=str(error),
                where=run.endpoint,
                do="Remove an API key (--api-key) from engine.args in hosts/<fleet>/fleet.nix.",
            ) from None
        except chat.ChatError as error:
            # The deadline cuts the last try short; what the engine said before tells more than that time-out.
            if not problem or time.monotonic() - begin < timeout_s:
                problem = str(error)
        time.sleep(POLL_S)
    raise SparkserveError(
        "ENGINE.READY",
        expected=f"a chat completion within {timeout_s:.0f} s",
        found=f"{problem or 'nothing listens yet'}; the last lines of the log:\n{tail(files.log)}\n",
        where=run.endpoint,
        do="A slow machine needs a larger serving.readyTimeoutS in hosts/<fleet>/fleet.nix.",
    )
