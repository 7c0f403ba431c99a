"""What the engine takes: how many requests run at once, how many tokens one may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.gates.subject import server_info

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.gates.subject import Target
    from sparkserve.plan import Plan

ROOM = 64  # tokens beside a long prompt: its template and what is answered (owen 6.2)


class Capacity(NamedTuple):
    """Requests at once, tokens of one, and tokens of all at once; None where nobody says."""

    running: int | None
    tokens: int | None
    pool: int | None


def of(target: Target) -> Capacity:
    """By the plan's arguments, and what the engine says where they are silent.

    Raises as `server_info`.
    """
    plan, said = target.plan, server_info(target.subject.endpoint, target.key_file)
    running = _argument(plan, "--max-running-requests") or _number(said, "max_running_requests")
    pool = _number(said, "max_total_num_tokens") or _argument(plan, "--max-total-tokens")
    names = ("context_length", "max_req_input_len")
    one = [pool, _argument(plan, "--context-length"), *(_number(said, name) for name in names)]
    return Capacity(running, min((value for value in one if value), default=None), pool)


def _argument(plan: Plan | None, name: str) -> int | None:
    args: Sequence[str] = plan.engine.args if plan else ()
    return int(args[args.index(name) + 1]) if name in args else None


def _number(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
