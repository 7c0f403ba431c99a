"""`sparkserve rank gone`: after the supervisor's end. Apart from it, as every stop waits for this."""

from __future__ import annotations

from sparkserve.group import run_files


def gone() -> None:
    """However it ended, what it said last must not be taken for the truth."""
    run_files.RANK.unlink(missing_ok=True)
    group = run_files.RUN / "group.json"
    if group.exists():  # on the head
        from sparkserve.front import state

        state.write(group, state.Group(state="down", reason="the head's supervisor is not running"))
