"""Whether the group answers: a token came out of all of it, lately. Pure: time comes from outside.

An HTTP server that answers proves nothing: it is one process of one rank, and goes on while the ranks wait
for each other in a collective for ever. What cannot be had from a hung group is a token: that is what counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.front.state import Group, Probe, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

RETRY_AFTER_S: dict[Verdict, int] = {"starting": 10, "draining": 10, "down": 30, "silent": 10, "proving": 2}

# A first probe that fails is repeated soon: a client may be waiting for it.
_FIRST_RETRY_S = 1.0


class Health:
    """Follows one engine over its boots. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float], *, canary_s: float, lost_s: float) -> None:
        self._clock = clock
        self._canary_s = canary_s
        self._lost_s = lost_s
        self.group = Group(state="down")
        self._up_at: float | None = None  # when we saw this boot come up
        self._token_at: float | None = None
        self._probe_at: float | None = None  # start of the last probe
        self._probe_out = False
        self._probe = Probe()

    def see(self, group: Group) -> bool:
        """Take what the controller says. True when the boot is over, and all that was in flight with it."""
        over = group.state in ("down", "starting") or group.boot != self.group.boot
        self.group = group
        if over:
            self._up_at = self._token_at = self._probe_at = None
            self._probe_out, self._probe = False, Probe()
        if group.state == "up" and self._up_at is None:
            self._up_at = self._clock()
        return over

    def token(self, at: float | None = None) -> None:
        """A token came out of the group: now, or not before `at`."""
        at = self._clock() if at is None else at
        self._token_at = max(at, self._token_at or at)

    @property
    def token_age_s(self) -> float | None:
        """Seconds since the last token of this boot, None before the first."""
        return None if self._token_at is None else self._clock() - self._token_at

    def probe_due(self) -> bool:
        """Whether to send a canary now. Never while tokens flow, and never two at a time."""
        if self.group.state != "up" or self._probe_out:
            return False
        now = self._clock()
        if self._token_at is None:
            return self._probe_at is None or now - self._probe_at >= min(_FIRST_RETRY_S, self._canary_s)
        last = max(self._token_at, self._probe_at or self._token_at)
        return now - last >= self._canary_s

    def probe_sent(self) -> None:
        """A canary is on its way."""
        self._probe_at, self._probe_out = self._clock(), True

    def probe_ended(self, failure: str | None) -> None:
        """The canary came back, or not: `failure` says why. Ignored when the boot has ended meanwhile."""
        if not self._probe_out or self._probe_at is None:
            return
        seconds = round(self._clock() - self._probe_at, 3)
        self._probe_out = False
        self._probe = Probe(result="failed" if failure else "ok", seconds=seconds, detail=failure or "")
        if failure is None:
            # The engine reports up to a second late, so the answer's time could be later than the token's.
            self.token(self._probe_at)

    @property
    def probe(self) -> Probe:
        """The last canary; one that is still out and slow counts more than the good one before it."""
        if self._probe_at is None:
            return self._probe
        age = round(self._clock() - self._probe_at, 3)
        if self._probe_out:
            return Probe(result="pending", seconds=age, detail=self._probe.detail, age_s=age)
        return self._probe.model_copy(update={"age_s": age})

    @property
    def verdict(self) -> Verdict:
        """In one word."""
        if self.group.state != "up" or self._up_at is None:
            return "down" if self.group.state == "up" else self.group.state
        if self._clock() - (self._up_at if self._token_at is None else self._token_at) > self._lost_s:
            return "silent"
        return "proving" if self._token_at is None else "ok"

    @property
    def reason(self) -> str:
        """One sentence for people and for the 503."""
        match self.verdict:
            case "ok":
                return self.group.reason
            case "proving":
                return "the group is up, and its first token in this boot is awaited"
            case "silent":
                probe = self.probe
                probed = f"; last probe {probe.result}: {probe.detail or f'{probe.seconds} s'}"
                return f"no token came out of the group for more than {self._lost_s:g} s{probed}"
        return self.group.reason or f"the group is {self.group.state}"

    @property
    def retry_after_s(self) -> int:
        """Seconds after which a refused client may ask again."""
        return self.group.retry_after_s or RETRY_AFTER_S.get(self.verdict, 1)

    @property
    def refuses(self) -> bool:
        """Whether a new request has no business with the engine."""
        return self.verdict not in ("ok", "proving")
