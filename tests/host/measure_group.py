"""One model over three nodes: its rate at TP=3 with our collectives, with gloo, and at TP=1, and why.

    sudo python tests/host/measure_group.py FOLDER bytes prime rates texts profile down [--py-spy PATH]

Works on a copy of this checkout in FOLDER, with ports and networks of its own, through `sparkserve up`: three
fleets there, `local-single` (TP=1, two threads), `local-triangle` (TP=3), and `gloo-triangle` (TP=3 without
the adapter). All are up at once, and those that are not being measured are frozen, so that every round has
all three. For that a fleet must stand being frozen: `group.lostS`, `canaryS` and the units' watchdogs are an
hour there.
`bytes` counts what `./sparkserve up --fleet local-triangle` of this checkout sends. Results go to
docs/results/group.json. Needs root and Nix, a machine that does nothing else, and everything committed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import engine_copy
import httpx
from profile_ranks import sampled

from sparkserve.engine import procfs
from sparkserve.local import faults, members, triangle
from sparkserve.local import names as naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sparkserve.plan import Plan

CHECKOUT = Path(__file__).parents[2]
RESULT = CHECKOUT / "docs/results/group.json"
FLEETS = {"tp1": "local-single", "oneshot": "local-triangle", "gloo": "gloo-triangle"}
NETWORKS = {"local-triangle": "10.79.61", "gloo-triangle": "10.79.62"}
TOKENS = 128
STORY = "Tell me a long story about a lighthouse."
PROMPTS = (
    "What is the capital of France?",
    "Count to ten.",
    "Write a haiku about rain.",
    "Explain why the sky is blue.",
    "Translate 'good morning' into Spanish.",
    "Write a Python function that adds two numbers.",
    "Who wrote Romeo and Juliet?",
    "What is 12 times 12?",
)


class Way(NamedTuple):
    """One fleet that is up: where it answers, and its ranks' processes."""

    name: str
    endpoint: str
    pid: int | None  # the engine's launcher, for a fleet that has no nodes

    def ranks(self) -> list[list[int]]:
        """The processes of each rank's node."""
        if self.pid is not None:
            return [procfs.tree(self.pid)]
        fleet = triangle.load(FLEETS[self.name])
        return [
            [process.pid for process in members.of_netns(naming.NETNS / fleet.names.netns(node))]
            for node in fleet.nodes
        ]

    def freeze(self, frozen: bool) -> None:
        """Stop it as a whole, or let it go on."""
        if self.pid is not None:
            for pid in procfs.tree(self.pid):
                os.kill(pid, signal.SIGSTOP if frozen else signal.SIGCONT)
            return
        fleet = triangle.load(FLEETS[self.name])
        for node in fleet.nodes:
            (faults.freeze if frozen else faults.thaw)(fleet, node)


def copy(folder: Path) -> engine_copy.Copy:
    """This checkout as it is now, copied into `folder`; the ports stay as at the first time."""
    path, port_file = folder / "checkout", folder / "port"
    made = engine_copy.make(path, {"local-triangle": NETWORKS["local-triangle"]})
    if not port_file.exists():
        port_file.write_text(str(made.port))
    port = int(port_file.read_text())
    patient = "\n  group.lostS = 3600;\n  group.canaryS = 3599;\n}\n"
    ends = {
        "local-single": "}\n",
        "local-triangle": patient,
        "gloo-triangle": "\n  adapters.oneshot-collectives.enable = false;" + patient,
    }
    found = {
        name: (path / f"hosts/{name}/fleet.nix").read_text() for name in ("local-single", "local-triangle")
    }
    for number, (name, end) in enumerate(ends.items()):
        text = found.get(name) or found["local-triangle"].replace(NETWORKS["local-triangle"], NETWORKS[name])
        text = text.replace(f"port = {made.port}", f"port = {port + number}").rstrip().removesuffix("}") + end
        (path / f"hosts/{name}").mkdir(exist_ok=True)
        (path / f"hosts/{name}/fleet.nix").write_text(text)
    for name in ("group-units", "guard"):
        module = path / f"modules/{name}.nix"
        module.write_text(re.sub(r'\bWatchdogSec = "\d+"', 'WatchdogSec = "3600"', module.read_text()))
    subprocess.run(["git", "add", "--all"], cwd=path, check=True)
    os.environ["SPARKSERVE_CHECKOUT"] = str(path)
    return engine_copy.Copy(path, port)


@contextmanager
def up(made: engine_copy.Copy, *names: str) -> Iterator[dict[str, Way]]:
    """These fleets, serving; afterwards none does."""
    ways = {}
    try:
        for name in names:
            done = made.json("up", "--fleet", FLEETS[name])
            ways[name] = Way(name, done["endpoint"], done["pid"])
        yield ways
    finally:
        for way in ways.values():
            way.freeze(False)
        for name in names:
            made.run("down", "--fleet", FLEETS[name])


class Run(NamedTuple):
    """One streamed answer: seconds to the first token, and tokens per second after it."""

    text: str
    prompt: int
    tokens: int
    first_s: float
    rate: float


def ask(endpoint: str, question: str, tokens: int, *, on: bool = True) -> Run:
    """One greedy answer; `on`: it goes on after its end, so that all are equally long."""
    body = {
        **{"model": "smollm2-135m", "messages": [{"role": "user", "content": question}]},
        **{"max_tokens": tokens, "temperature": 0, "ignore_eos": on, "stream": True},
        "stream_options": {"include_usage": True},
    }
    text, times = "", []
    usage: dict[str, int] = {}
    begin = time.monotonic()
    with httpx.stream("POST", f"{endpoint}/v1/chat/completions", json=body, timeout=300) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            piece = "".join(choice["delta"].get("content") or "" for choice in event["choices"])
            if piece:
                times.append(time.monotonic())
                text += piece
            usage = event.get("usage") or usage
    count = int(usage["completion_tokens"])
    # One piece may hold two tokens, so short answers have no rate.
    rate = (count - 1) / (times[-1] - times[0]) if len(times) > 2 else 0.0
    return Run(text, int(usage["prompt_tokens"]), count, times[0] - begin, rate)


def spent(ranks: list[list[int]]) -> list[dict[str, float]]:
    """Per rank, in seconds: CPU and run queue of the thread that computes, CPU of all the rest."""
    found = []
    for pids in ranks:
        total = {"compute": 0.0, "queued": 0.0, "rest": 0.0}
        for pid in pids:
            for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                cpu, queued, _ = (int(each) / 1e9 for each in task.read_text().split())
                if _computes(pid) and task.parent.name == str(pid):
                    total["compute"] += cpu
                    total["queued"] += queued
                else:
                    total["rest"] += cpu
        found.append(total)
    return found


def busy_s() -> float:
    """Seconds that this machine's cores have worked since its start."""
    user, nice, system, _, _, irq, softirq, *_ = (
        int(each) for each in Path("/proc/stat").read_text().split()[1:9]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def rates(ways: dict[str, Way], rounds: int) -> dict[str, Any]:
    """`rounds` times the same answer of every fleet in turns, the order another one each time."""
    records: list[dict[str, Any]] = []
    for number in range(rounds):
        names = list(ways)
        for name in names[number % 3 :] + names[: number % 3]:
            way = ways[name]
            way.freeze(False)
            ranks = way.ranks()
            ask(way.endpoint, STORY, 8)
            before, busy, began = spent(ranks), busy_s(), time.monotonic()
            run = ask(way.endpoint, STORY, TOKENS)
            wall, after = time.monotonic() - began, spent(ranks)
            ours = sum(
                b["compute"] + b["rest"] - a["compute"] - a["rest"]
                for a, b in zip(before, after, strict=True)
            )
            others = (busy_s() - busy - ours) / wall
            way.freeze(True)
            per_token = [
                {key: round((b[key] - a[key]) / run.tokens * 1000, 2) for key in a}
                for a, b in zip(before, after, strict=True)
            ]
            record = {"round": number, "way": name, "rate": run.rate, "first_s": run.first_s}
            record |= {"tokens": run.tokens, "wall_s": wall, "ms_a_token": per_token, "text": run.text}
            record["other_cores"] = round(others, 2)
            records.append(record)
            print(json.dumps({**record, "text": run.text[:40]}), flush=True)
    by_way = {name: [r["rate"] for r in records if r["way"] == name] for name in FLEETS}
    ratios = {
        f"oneshot/{other}": spread([a / b for a, b in zip(by_way["oneshot"], by_way[other], strict=True)])
        for other in ("tp1", "gloo")
    }
    return {
        "rates": {name: spread(values) for name, values in by_way.items()},
        "ratios": ratios,
        "same_text": len({r["text"] for r in records}) == 1,
        "records": records,
    }


def texts(ways: dict[str, Way], tokens: int = 32) -> dict[str, Any]:
    """Greedy answers to PROMPTS, until they end or `tokens`, of every fleet."""
    said: dict[str, dict[str, str]] = {}
    for name, way in ways.items():
        way.freeze(False)
        said[name] = {prompt: ask(way.endpoint, prompt, tokens, on=False).text for prompt in PROMPTS}
        way.freeze(True)
    pairs = (("tp1", "oneshot"), ("tp1", "gloo"), ("oneshot", "gloo"))
    return {
        "prompts": len(PROMPTS),
        "max_tokens": tokens,
        "equal": {f"{a} = {b}": sum(said[a][p] == said[b][p] for p in PROMPTS) for a, b in pairs},
        "texts": said,
    }


# SmolLM2-135M: all-reduces in one pass through the model (the embedding, and attention and MLP of each of 30
# layers) and the bytes of a token in each; the logits of the last token that a rank gives to the others.
REDUCES, WIDTH, LOGITS, HEADER, SIZE = 61, 576 * 4, 49152 // 3 * 4, 16, 3


def sent_in(passes: list[int]) -> int:
    """What a rank sends to one peer in passes of so many tokens: the tensors, and our headers."""
    return sum(REDUCES * (tokens * WIDTH + HEADER) + LOGITS + 2 * HEADER for tokens in passes)


def counted(requests: int = 5) -> dict[str, Any]:
    """Bytes of every interface of every node while requests run, beside the tensors that these must send."""
    sparkserve = [str(CHECKOUT / "sparkserve")]
    os.environ["SPARKSERVE_CHECKOUT"] = str(CHECKOUT)
    words = ["--fleet", "local-triangle"]
    up = subprocess.run([*sparkserve, "up", *words, "--json"], stdout=subprocess.PIPE, check=True)
    endpoint = json.loads(up.stdout)["endpoint"]
    try:
        fleet = triangle.load("local-triangle")
        found: dict[str, Any] = {}
        for kind, question, tokens in (("decode", STORY, TOKENS), ("prefill", STORY * 150, 2)):
            ask(endpoint, question, 2)
            passes: list[int] = []
            before = {node: faults.counters(fleet, node) for node in fleet.nodes}
            began = time.monotonic()
            for _ in range(requests):
                httpx.post(f"{endpoint}/flush_cache").raise_for_status()
                run = ask(endpoint, question, tokens)
                passes += [run.prompt, *[1] * (run.tokens - 1)]
            seconds = time.monotonic() - began
            after = {node: faults.counters(fleet, node) for node in fleet.nodes}
            tensors = sent_in(passes)
            found[kind] = {
                "requests": requests,
                "seconds": round(seconds, 1),
                "tensor_bytes_to_a_peer": tensors,
            }
            found[kind]["tokens_in"], found[kind]["tokens_out"] = run.prompt, run.tokens
            found[kind]["nodes"] = {
                node: _shares(fleet.plan(node), before[node], after[node], tensors) for node in fleet.nodes
            }
        return found
    finally:
        subprocess.run([*sparkserve, "down", *words], check=True)


def _shares(plan: Plan, before: dict[str, Any], after: dict[str, Any], tensors: int) -> dict[str, Any]:
    """Of one node: bytes sent and received by interface, and what that says."""
    moved = {
        name: [after[name].sent - before[name].sent, after[name].received - before[name].received]
        for name in after
        if name != "lo"
    }
    assert plan.fabric is not None
    management = sum(moved.pop(plan.fabric.management.interface))
    links = [
        {
            "interface": link.interface,
            "peer": link.peers[0].rank,
            "stripe": link.stripe,
            "sent": moved[link.interface][0],
            "received": moved.pop(link.interface)[1],
        }
        for link in plan.fabric.links
    ]
    assert not moved, moved
    cables = sum(link["sent"] + link["received"] for link in links)
    both = tensors * 2 * (SIZE - 1)  # sent and received
    return {
        "links": links,
        "management": management,
        "management_share": round(management / (management + cables), 5),
        # Even if every byte on the management network were a tensor's.
        "tensors_on_cables_at_least": round(1 - management / both, 5),
        "cables_over_tensors": round(cables / both, 4),
    }


def profiled(ways: dict[str, Way], py_spy: str) -> dict[str, Any]:
    """Milliseconds of a token in each kind of work, waiting for a core included, of every rank."""
    found: dict[str, Any] = {}
    for name in ("tp1", "oneshot"):
        way = ways[name]
        way.freeze(False)
        computing = [next(pid for pid in pids if _computes(pid)) for pids in way.ranks()]
        alone = ask(way.endpoint, STORY, TOKENS).rate
        with sampled(py_spy, computing) as ranks:
            watched = ask(way.endpoint, STORY, 2 * TOKENS).rate
        way.freeze(True)
        of_a_token = [
            {kind: round(1000 / watched * part, 1) for kind, part in each.items()} for each in ranks
        ]
        found[name] = {"rate": alone, "rate_sampled": watched, "ms_of_a_token": of_a_token}
    return found


def _computes(pid: int) -> bool:
    stat = procfs.look(pid)
    return stat is not None and stat.name.startswith("sglang::sched")


def spread(values: list[float]) -> dict[str, float]:
    """Median, least, and greatest."""
    rounded = [round(value, 3) for value in values]
    return {"median": statistics.median(rounded), "min": min(rounded), "max": max(rounded), "n": len(rounded)}


def machine() -> dict[str, Any]:
    """Where and on what this was measured."""
    cpu = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    )
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return {
        "cpu": cpu.partition(": ")[2],
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="+", choices=("prime", "rates", "texts", "profile", "bytes", "down"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--py-spy", default="py-spy")
    options = parser.parse_args()
    before = machine()
    calls: dict[str, Callable[[dict[str, Way]], dict[str, Any]]] = {
        "rates": lambda ways: rates(ways, options.rounds),
        "texts": texts,
        "profile": lambda ways: profiled(ways, options.py_spy),
    }
    if "bytes" in options.parts:
        keep("bytes", before, counted())
    if options.parts == ["bytes"]:
        return
    made = copy(options.folder.resolve())
    if "prime" in options.parts:
        for name in FLEETS:
            with up(made, name):
                pass
    if wanted := [part for part in options.parts if part in calls]:
        with up(made, *FLEETS) as ways:
            for way in ways.values():
                ask(way.endpoint, STORY, 16)  # what is made at first use
                way.freeze(True)
            for part in wanted:
                keep(part, before, calls[part](ways))
    if "down" in options.parts:
        for fleet in FLEETS.values():
            made.run("down", "--fleet", fleet)


def keep(part: str, before: dict[str, Any], found: dict[str, Any]) -> None:
    """Write a part of the result, and print it without its long lists."""
    whole = json.loads(RESULT.read_text()) if RESULT.exists() else {"schema": "sparkserve.results/1"}
    command = f"python tests/host/measure_group.py FOLDER {part}"
    whole[part] = {"machine": {**before, "load_after": os.getloadavg()[0]}, "command": command, **found}
    RESULT.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    short = {key: value for key, value in found.items() if key not in ("records", "texts")}
    print(part, json.dumps(short, indent=1), flush=True)


if __name__ == "__main__":
    main()
