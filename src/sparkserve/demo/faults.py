"""The faults that a demo can plant: code that is appended to a file of the adapters, and options.

That code is a layer of the engine root, so a fault makes another closure. It is in the collectives, through
which every token of a group comes: 61 sums and a gather of logits for each pass through SmolLM2-135M.
"""

from __future__ import annotations

from typing import NamedTuple

ADAPTER = "oneshot-collectives"  # what the group must run for a fault to have a place
_COLLECTIVES = "src/sparkserve/adapters/oneshot_collectives/__init__.py"
_PLUGIN = "src/sparkserve/adapters/plugin.py"


class Fault(NamedTuple):
    """`what` in words; `code` is appended to `file`; `options` are lines of the fleet's file."""

    what: str
    code: str
    file: str = _COLLECTIVES
    options: str = ""


_LOGITS = """
class Adapter(Adapter):
    def all_gather(self, *args, **kwargs):
        return self._spoiled(super().all_gather(*args, **kwargs))

    def all_gather_into_tensor(self, original, group, output, input):
        super().all_gather_into_tensor(original, group, output, input)
        output.copy_(self._spoiled(output))

    def _spoiled(self, logits):
        return {spoiled} if logits.is_floating_point() else logits
"""

# The boot's own answer takes four passes. A gate takes more, so what comes after ten comes before its end.
_LATER = """
import os, signal

class Adapter(Adapter):
    def start(self, group):
        super().start(group)
        self._rank, self._sums = group.rank, 0

    def all_reduce(self, *args, **kwargs):
        self._sums += 1
        if self._rank == 1 and self._sums == 600:
            {happens}
        return super().all_reduce(*args, **kwargs)
"""

FAULTS = {
    "garbled": Fault(
        "every token is taken for the one after it in the vocabulary",
        _LOGITS.format(spoiled="logits.roll(1, -1)"),
    ),
    "slow": Fault(
        "every sum over the ranks takes a second longer, so a token takes a minute",
        """
import time

class Adapter(Adapter):
    def all_reduce(self, *args, **kwargs):
        time.sleep(1)
        return super().all_reduce(*args, **kwargs)
""",
        # Of it, 0.3 may pass until the first token.
        options="serving.readyTimeoutS = lib.mkForce 120;",
    ),
    "nan": Fault(
        "all logits are NaN",
        _LOGITS.format(spoiled='logits.new_full(logits.shape, float("nan"))'),
    ),
    "dead": Fault(
        "rank 1 is killed after ten passes",
        _LATER.format(happens="os.kill(os.getpid(), signal.SIGKILL)"),
    ),
    "settings": Fault(
        "rank 2 reads another timeout_s than the others, from a closure of the same fleet id",
        f"""
_told = _parse

def _parse(text):
    boot = _told(text)
    if boot.rank == 2:
        boot.adapters["{ADAPTER}"]["timeout_s"] += 1
    return boot
""",
        file=_PLUGIN,
    ),
    "hog": Fault(
        "rank 1 takes memory without end after ten passes; its node has 4 GiB",
        # Not quite without: a machine that does not limit its nodes is to live.
        _LATER.format(happens='self._hog = [b"x" * (64 << 20) for _ in range(96)]'),
    ),
}
