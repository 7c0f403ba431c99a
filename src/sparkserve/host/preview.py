"""What an activation would do, in words and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkserve.host import effects, kernel

if TYPE_CHECKING:
    from sparkserve.host.change import Change
    from sparkserve.host.system import System
    from sparkserve.host.there import There


def preview(system: System, change: Change) -> dict[str, Any]:
    """What `change` would do to the node, as `--json` prints it."""
    host = change.plan.host if change.plan else None
    stops = [*effects.running(system, change.masks), *effects.running(system, change.dropped)]
    restarts = effects.units(change.changed, host.units if host else ())
    if effects.FRONT in restarts and not effects.running(system, [effects.FRONT]):
        restarts.remove(effects.FRONT)
    return {
        "closure": str(change.closure) if change.closure else None,
        "interrupted": change.record.pending is not None,
        "files": [
            {"path": path, "now": _words(change.now[path]), "then": _words(change.target(path))}
            for path in change.todo
        ],
        "foreign": list(change.foreign),
        "sysctls": {
            name: {"now": kernel.read(system, name), "then": value} for name, value in change.sysctls.items()
        },
        "stop": stops,
        "reload": [
            " ".join(command)
            for reader in effects.readers(system, change.changed)
            for command in reader.commands(change.written)
        ],
        "restart": restarts,
        "reboot": kernel.missing_args(system, host.kernel_args) if host else [],
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The same, a line a change; none when the node is so already."""
    said = ["go on with a change that was interrupted"] if found["interrupted"] else []
    said += [f"stop {name}" for name in found["stop"]]
    for file in found["files"]:
        by_hand = ", which was edited by hand" if file["path"] in found["foreign"] else ""
        said.append(f"{file['path']}: {file['now']}{by_hand} -> {file['then']}")
    said += [f"{name}: {value['now']} -> {value['then']}" for name, value in found["sysctls"].items()]
    said += [f"run {command}" for command in found["reload"]]
    said += [f"restart {name}" for name in found["restart"]]
    return said + [f"after a reboot: {argument} on the kernel's command line" for argument in found["reboot"]]


def _words(there: There | None) -> str:
    if there is None:
        return "nothing"
    if there.kind == "link":
        return "masked" if there.value == "/dev/null" else f"link to {there.value}"
    return f"file {there.value[:12]} {there.mode:04o}"
