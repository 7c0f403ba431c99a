"""What the endpoint of a group says of itself."""

from __future__ import annotations

import time
from typing import NamedTuple

from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.terminal import phase

ANSWER_S = 5.0
LOOK_S = 0.2
HEALTHY_S = 60.0  # from "up" to the front's first token, on cores that three ranks share


class Health(NamedTuple):
    """The front's verdict ("" without an answer of a front), why, and the age of the last token."""

    verdict: str
    reason: str
    token_age_s: float | None = None


def ask(endpoint: str) -> Health:
    """What /health says."""
    import httpx

    try:
        # Not through a proxy of the environment, which reaches no loopback of ours.
        value = httpx.get(f"{endpoint}/health", timeout=ANSWER_S, trust_env=False).json()
        return Health(value["status"], value["reason"], value["last_token_age_s"])
    except httpx.HTTPError as error:
        return Health("", f"no answer from {endpoint}: {error or type(error).__name__}")
    except (ValueError, KeyError, TypeError):
        return Health("", f"{endpoint} is not the front of a group")


def wait(endpoint: str, fleet: str, seconds: float = HEALTHY_S) -> None:
    """Wait until the front of `fleet` has seen a token. Raises `ENGINE.READY`."""
    begin = time.monotonic()
    with phase("Wait for a real answer"):
        while (found := ask(endpoint)).verdict != "ok":
            if time.monotonic() - begin > seconds:
                raise SparkserveError(
                    "ENGINE.READY",
                    expected=f"a token from the whole group within {seconds:.0f} s",
                    found=found.reason,
                    where=f"{endpoint}/health",
                    do=f"{command('status', fleet)} says which rank it waits for.",
                )
            time.sleep(LOOK_S)
