"""Where the time of the thread that computes goes, by samples of py-spy (not pinned: give a path)."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RATE_HZ = 50  # three samplers at 100 Hz took a tenth of two cores

# The first that fits, from the innermost frame outwards.
KINDS = (
    ("waiting for peers", (".receive (", "mesh.py")),
    ("sending", (".send (", "mesh.py")),
    ("other code of the adapter", ("", "adapters/")),
    ("gloo", ("", "distributed_c10d.py")),
    ("attention", ("", "torch_native_backend.py")),
    ("linear layers", ("", "layers/linear.py")),
    ("logits", ("", "logits_processor.py")),
    ("sampling", ("", "layers/sampler.py")),
    ("other layers", ("", "models/llama.py")),
    ("around the model", ("", "model_executor/")),
)
REST = "scheduler"


@contextmanager
def sampled(py_spy: str, pids: Sequence[int]) -> Iterator[list[dict[str, float]]]:
    """While the body runs, sample the main threads of `pids`; then the list has each one's shares by kind."""
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, str(pid)) for pid in pids]
        words = [
            py_spy,
            "record",
            "--idle",
            "--nonblocking",
            "--threads",
            "--full-filenames",
            "--format",
            "raw",
        ]
        words += ["--rate", str(RATE_HZ), "--duration", "unlimited"]
        running = [
            subprocess.Popen([*words, "--output", str(output), "--pid", str(pid)], stdout=subprocess.DEVNULL)
            for pid, output in zip(pids, outputs, strict=True)
        ]
        try:
            yield found
        finally:
            for each in running:
                each.send_signal(2)
            for each in running:
                each.wait(30)
        found += [shares(output.read_text()) for output in outputs]


def shares(raw: str) -> dict[str, float]:
    """The part of the main thread's samples in each kind of work, of stacks as `frame;frame;... count`."""
    counts: dict[str, int] = {}
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        if "MainThread" in thread:
            kind = _kind(frames)
            counts[kind] = counts.get(kind, 0) + int(count)
    total = sum(counts.values())
    return {
        kind: round(count / total, 4) for kind, count in sorted(counts.items(), key=lambda item: -item[1])
    }


def _kind(frames: Sequence[str]) -> str:
    for frame in reversed(frames):
        for kind, (name, file) in KINDS:
            if name in frame and file in frame:
                return kind
    return REST
