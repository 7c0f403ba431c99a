"""The plugin that SGLang loads in every process of the engine (entry point group `sglang.srt.plugins`).

The launcher passes the adapters of the plan in the environment. Whatever is wrong ends the process with a
line that says so; what is right is armed when the ranks meet, and every rank writes one line per adapter.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import traceback
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.adapters import fingerprint, registry, report
from sparkserve.adapters.agree import agree
from sparkserve.adapters.contract import Failure, Group, Link, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.adapters.contract import Adapter, Declaration

VARIABLE = "SPARKSERVE_ADAPTERS"
SCHEMA = "sparkserve.adapters/1"
# The ranks reach the meeting together, straight after their process group: only a hung one is late.
MEETING_S = 60


class Boot(NamedTuple):
    """What the launcher says: this rank, how many there are, adapters with settings, and the cables."""

    rank: int
    size: int
    adapters: dict[str, dict[str, Any]]
    links: tuple[Link, ...]


class Loaded(NamedTuple):
    """An adapter in this process, not yet started."""

    adapter: Adapter
    settings: dict[str, int]
    originals: dict[str, Any]
    fingerprint: str


def install() -> None:
    """Register the hooks of the plan's adapters. Does nothing in an engine that the launcher gave none."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    try:
        boot = _parse(text)
    except Exception as error:
        report.end("refused", rank=None, adapter=None, reason=f"{VARIABLE}: {error!r}")
    try:
        _check_targets(fingerprint.PLUGIN, None)
        known = registry.declarations()
        _check_names(list(boot.adapters), known)
        loaded = {name: _load(known[name], settings) for name, settings in boot.adapters.items()}
        _register(boot, loaded, known)
    except Exception as error:
        _refuse(boot, error)


def _parse(text: str) -> Boot:
    value = json.loads(text)
    if value["schema"] != SCHEMA:
        raise ValueError(f"schema {value['schema']}, not {SCHEMA}")
    links = tuple(Link(*(each[field] for field in Link._fields)) for each in value["links"])
    adapters = {each["name"]: each["settings"] for each in value["adapters"]}
    if len(adapters) < len(value["adapters"]):
        raise ValueError("an adapter is named twice")
    return Boot(value["rank"], value["size"], adapters, links)


def _check_names(names: list[str], known: dict[str, Declaration]) -> None:
    for name in names:
        if name not in known:
            raise Refused(f"no such adapter; there are {', '.join(known)}", adapter=name)
    for one, other in registry.conflicts(names, known):
        raise Refused(f"it excludes {other}", adapter=one)


def _check_targets(targets: tuple[str, ...], adapter: str | None) -> dict[str, str]:
    recorded = fingerprint.recorded()
    found = {}
    for target in targets:
        try:
            found[target] = fingerprint.of(target)
        except Exception as error:
            raise Refused(f"{target} does not resolve: {error!r}", adapter=adapter) from error
        wanted = recorded.get(target)
        if found[target] != wanted:
            reason = f"{target} is not the source it was qualified on: {found[target]}, not {wanted}"
            raise Refused(reason, adapter=adapter)
    return found


def _load(declaration: Declaration, given: dict[str, Any]) -> Loaded:
    settings = declaration.complete(given)
    found = _check_targets(tuple(declaration.hooks.values()), declaration.name)
    try:
        adapter = registry.code(declaration.name)(settings)
    except Exception as error:
        raise Refused(f"it raised {error!r}", adapter=declaration.name) from error
    originals = {target: fingerprint.resolve(target) for target in found}
    return Loaded(adapter, settings, originals, fingerprint.digest(found))


def _register(boot: Boot, loaded: dict[str, Loaded], known: dict[str, Declaration]) -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for name, each in loaded.items():
        for method, target in known[name].hooks.items():
            hook = _guarded(boot.rank, name, getattr(each.adapter, method))
            HookRegistry.register(target, hook, HookType.AROUND)
    HookRegistry.register(fingerprint.MEETING, functools.partial(_meet, boot, loaded), HookType.BEFORE)


def _guarded(rank: int, name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """The hook, ending the process when it raises: a rank that skips a collective leaves others waiting."""

    def around(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return hook(original, *args, **kwargs)
        except Failure as failure:
            report.end("failed", rank=rank, adapter=name, reason=str(failure), **failure.fields)
        except Exception:
            report.end("failed", rank=rank, adapter=name, reason=traceback.format_exc(limit=-3))

    return around


def _meet(boot: Boot, loaded: dict[str, Loaded], *_args: Any, **_kwargs: Any) -> None:
    """Runs in front of `fingerprint.MEETING`, in the scheduler process of every rank."""
    import torch.distributed as dist

    try:
        ranks = dist.get_rank(), dist.get_world_size()
        if ranks != (boot.rank, boot.size):
            raise Refused(f"rank and size are {ranks}, the launcher says {(boot.rank, boot.size)}")
        meet = _Store(dist.distributed_c10d._get_default_store())
        mine = {n: {"settings": e.settings, "fingerprint": e.fingerprint} for n, e in loaded.items()}
        agree(*ranks, mine, meet, timeout_s=MEETING_S)
        if boot.rank == 0:
            meet.put("adapters/token", secrets.token_hex(32))
        token = bytes.fromhex(meet.get("adapters/token", MEETING_S))
        for name, each in loaded.items():
            _start(name, each, Group(*ranks, boot.links, meet, token))
    except Exception as error:
        _refuse(boot, error)
    for name, each in loaded.items():
        report.line(
            "armed",
            rank=boot.rank,
            adapter=name,
            fingerprint=each.fingerprint,
            settings=fingerprint.digest(each.settings),
            group=fingerprint.digest(mine),
        )


def _start(name: str, loaded: Loaded, group: Group) -> None:
    for target, original in loaded.originals.items():
        # SGLang logs a hook that it could not apply, and goes on.
        if fingerprint.resolve(target) is original:
            raise Refused(f"its hook is not around {target}", adapter=name)
    try:
        loaded.adapter.start(group)
    except Exception as error:
        raise Refused(f"it raised {error!r}", adapter=name) from error


def _refuse(boot: Boot, error: Exception) -> None:
    reason = str(error) if isinstance(error, Refused) else traceback.format_exception_only(error)[-1].strip()
    report.end("refused", rank=boot.rank, adapter=getattr(error, "adapter", None), reason=reason)


class _Store:
    """torch's key-value store of the rendezvous, which rank 0 holds."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, key: str, value: str) -> None:
        self._store.set(f"sparkserve/{key}", value)

    def get(self, key: str, timeout_s: float) -> str:
        import torch.distributed as dist

        try:
            self._store.wait([f"sparkserve/{key}"], timedelta(seconds=timeout_s))
        except dist.DistStoreError as error:
            raise TimeoutError(str(error)) from None
        value: bytes = self._store.get(f"sparkserve/{key}")
        return value.decode()
