"""What owners of Sparks published about memory, and what the model (nix/memory) says of the same.

A case names its source, as docs/memory.md has them, with the section of the dossier that holds the figure.
Its expression is Nix, in the scope of tests/memory/scope.nix. `python tests/host/published.py` prints
the table of docs/memory.md.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from sparkserve import nix

ROOT = Path(__file__).parents[2]


class Case(NamedTuple):
    """A figure. `why` explains a difference above `within`, which then is the difference that is allowed."""

    what: str
    source: str
    unit: str
    published: float
    expression: str
    why: str = ""
    within: float = 0.05


POOL = 121.7
OTHER_ENGINE = (
    "vLLM and other kernels, where the model is of SGLang: one pool for all graphs, embedding and head in "
    "the display reservation (0.8 GiB), 0.9 GiB less weights"
)
CASES = (
    Case("a token of the cache", "M 1.5", "bytes", 1670.75, "cache.tokens 25600000 / 25600000.0"),
    Case("750,000 tokens", "M 7.1", "GB", 1.25, "gb (cache.tokens 750000)"),
    Case("8,000,000 tokens", "M 7.1", "GB", 13.4, "gb (cache.tokens 8000000)"),
    Case("16,000,000 tokens", "M 7.1", "GB", 26.7, "gb (cache.tokens 16000000)"),
    Case(
        "window slots, 4 requests, chunk 1024",
        "M 7.1",
        "slots",
        13312,
        "cache.slots { running = 4; chunk = 1024; }",
    ),
    Case(
        "window slots, 16 requests, chunk 1024",
        "K 1.3",
        "slots",
        45568,
        "cache.slots { running = 16; chunk = 1024; }",
    ),
    Case(
        "windows, 4 requests, chunk 1024",
        "M 7.1",
        "GiB",
        0.30,
        "gib (cache.windows (cache.slots { running = 4; chunk = 1024; }))",
    ),
    Case(
        "windows, 4 requests, chunk 2048",
        "M 7.1",
        "GiB",
        0.34,
        "gib (cache.windows (cache.slots { running = 4; chunk = 2048; }))",
    ),
    Case(
        "windows, 8 requests, chunk 4096",
        "M 7.1",
        "GiB",
        0.67,
        "gib (cache.windows (cache.slots { running = 8; chunk = 4096; }))",
    ),
    Case(
        "tokens in 8.84 GiB, 4 requests",
        "M 7.1",
        "tokens",
        5491200,
        "(8.84 * GiB - cache.windows (cache.slots { running = 4; chunk = 1024; })) / perToken",
    ),
    Case(
        "tokens at fraction 0.80 with an Engram cache of 4",
        "K 1.3",
        "tokens",
        6.7e6,
        "pool 80 four",
        "5.6 to 7.8 million at different boots, as cached files count as used",
        0.17,
    ),
    Case(
        "tokens at fraction 0.80, no pin",
        "M 7.1",
        "tokens",
        10029056,
        "pool 80 (four // { cacheGiB = 0; })",
        "a boot with 3 GiB more free than the one the model has from the log at TP3; a GiB is 640,000 tokens",
        0.2,
    ),
    Case("routed experts, whole", "M 1.2", "GiB", 268.95, "gib (bytes (weights 1).experts)"),
    Case("vision", "M 1.2", "GiB", 0.90, "gib (bytes (weights 1).vision)"),
    Case("embedding and head, whole", "M 1.2", "GiB", 2.46, "gib (bytes (weights 1).vocabulary)"),
    Case("draft, whole", "M 1.2", "GiB", 7.39, "gib (bytes (weights 1).draft)"),
    Case("target at TP4", "M 7.1", "GiB", 72.14, "gib (target 4)"),
    Case("target at TP4, another boot", "K 1.1", "GiB", 70.76, "gib (target 4)"),
    Case("target at TP3", "M 3", "GiB", 94.00, "gib (target 3)"),
    Case("draft at TP3", "M 3", "GiB", 2.80, "gib (bytes (weights 3).draft)"),
    Case(
        "draft at TP4",
        "K 1.1",
        "GiB",
        2.35,
        "gib (bytes (weights 4).draft)",
        "that boot keeps the draft's head a second time in FP8 and slices of the projection",
        0.15,
    ),
    Case("weights at TP4", "O 1.8", "GiB", 73.6, "gib (loaded 4)"),
    Case("weights at TP3", "O 1.8", "GiB", 97.5, "gib (loaded 3)"),
    Case("weights at TP2", "M 0.2", "GiB", 145, "gib (loaded 2)"),
    Case("weights at TP3", "M 0.2", "GiB", 101, "gib (loaded 3)"),
    Case("weights at TP4", "M 0.2", "GiB", 77, "gib (loaded 4)"),
    Case("layer: wqkv_a at TP4", "O 1.9", "MiB", 8.75, 'mib (part 4 "wqkv_a")'),
    Case("layer: wq_b at TP4", "O 1.9", "MiB", 10.0, 'mib (part 4 "wq_b")'),
    Case(
        "layer: wo_a at TP4",
        "O 1.9",
        "MiB",
        8.0,
        'mib (part 4 "wo_a")',
        "8 bits there; SGLang makes it BF16 at load",
        1.0,
    ),
    Case("layer: wo_b at TP4", "O 1.9", "MiB", 10.0, 'mib (part 4 "wo_b")'),
    Case("layer: router", "O 1.9", "MiB", 3.75, 'mib (part 4 "router")'),
    Case("layer: shared expert at TP4", "O 1.9", "MiB", 8.44, 'mib (part 4 "shared expert")'),
    Case("layer: hyper-connections", "O 1.9", "MiB", 3.75, 'mib (part 4 "hyper-connections")'),
    Case("layer: indexer", "O 1.9", "MiB", 5.31, 'mib (part 4 "indexer queries" + part 4 "indexer heads")'),
    Case("layer: compressor of ratio 1", "O 1.9", "MiB", 5, 'mib (part 4 "compressors")'),
    Case("layer: Engram projection, whole", "O 1.9", "MiB", 150, 'mib (part 4 "engram projection")'),
    Case("one routed expert at TP4", "O 1.9", "MiB", 4.48, 'mib (part 4 "routed experts" / 384)'),
    Case("one routed expert at TP3", "O 1.9", "MiB", 5.98, 'mib (part 3 "routed experts" / 384)'),
    Case("NCCL with its own buffers", "M 7.3", "GiB", 4.7, 'gib (term "nccl" (four // { nccl = stock; }))'),
    Case("NCCL with ours", "M 7.3", "MB", 139, 'term "nccl" four / 1.0e6'),
    Case("graphs of a boot with 4 requests", "M 3", "GiB", 2.22, 'gib (term "graphs" three)'),
    Case("graphs of a boot with 16 requests", "K 4.5", "GiB", 5.6, 'gib (term "graphs" four)'),
    Case(
        "graphs without any batch size",
        "M 7.1",
        "GiB",
        0.58,
        'gib (term "graphs" three - (term "graphs" four - term "graphs" three) / 2)',
    ),
    Case(
        "scores of 1024 at a million",
        "M 7.2",
        "GB",
        15,
        'gb (term "indexer" (three // { chunk = 1024; context = 1048576; }))',
    ),
    Case(
        "scores of 4096 at a million",
        "M 7.2",
        "GB",
        60,
        'gb (term "indexer" (three // { chunk = 4096; context = 1048576; }))',
    ),
    Case("scores in parts", "M 7.2", "GiB", 2, 'gib (term "indexer" four)'),
    Case("memory in use, TP3 head, idle", "M 7.3", "GiB", POOL - 5.6, "idle three"),
    Case("memory in use, TP4 head, a prompt of a million", "M 9.2", "GiB", POOL - 6029 / 1024, "used four"),
    Case(
        "memory in use, TP4 head, chunk 8192",
        "K 7.4",
        "GiB",
        POOL - 5.7,
        "used (four // { chunk = 8192; kvTokens = 3670000; })",
    ),
    Case(
        "memory in use, TP4 worker, chunk 8192",
        "K 7.4",
        "GiB",
        POOL - 7.4,
        "used (four // { head = false; chunk = 8192; kvTokens = 3670000; })",
    ),
    Case(
        "memory in use, TP3 head, vLLM",
        "O 2.7",
        "GiB",
        POOL - 5.99,
        "used otherThree",
        OTHER_ENGINE,
        0.1,
    ),
    Case(
        "memory in use, TP3 worker, vLLM",
        "O 2.7",
        "GiB",
        POOL - 6.99,
        "used (otherThree // { head = false; })",
        OTHER_ENGINE,
        0.1,
    ),
    Case(
        "memory in use, TP4 head, vLLM",
        "O 2.7",
        "GiB",
        POOL - 19.35,
        "used otherFour",
        OTHER_ENGINE,
        0.12,
    ),
    Case(
        "memory in use, TP4 worker, vLLM",
        "O 2.7",
        "GiB",
        POOL - 21.16,
        "used (otherFour // { head = false; })",
        OTHER_ENGINE,
        0.12,
    ),
)


def evaluate(expression: str) -> Any:
    """The value of an expression with the model in scope."""
    text = f"with import {ROOT}/tests/memory/scope.nix {{ root = {ROOT}; }}; {expression}"
    argv = ["nix-instantiate", "--eval", "--strict", "--json", "--expr", text]
    done = subprocess.run(argv, env=nix.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values() -> list[float]:
    """What the model says of each case, in their order."""
    found: list[float] = evaluate(f"[ {' '.join(f'({case.expression})' for case in CASES)} ]")
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10000 else f"{value:.4g}"


def table() -> str:
    """The table of docs/memory.md."""
    lines = ["| figure | source | published | model | difference | why |", "|---|---|---|---|---|---|"]
    for case, value in zip(CASES, values(), strict=True):
        both = f"{_number(case.published)} {case.unit} | {_number(value)}"
        off = value / case.published - 1
        lines.append(f"| {case.what} | {case.source} | {both} | {off:+.1%} | {case.why} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
