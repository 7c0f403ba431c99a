"""The one run path: the whole bubblewrap command line of an engine, as a pure function.

The same line runs on the laptop, in the Nix build sandbox (tried: Nix 2.8, nothing differs) and as a unit
on a Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparkserve.engine.closure import Closure
    from sparkserve.plan import Plan

CHECK_SHM_MIB = 64


def command(
    plan: Plan,
    closure: Closure,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    leashed: bool = False,
    status_fd: int | None = None,
) -> list[str]:
    """The argv that runs the engine of `plan` in the root of `closure`.

    `args` come after the plan's and `env` over the plan's: what is known only when a boot begins, such as the
    port where its ranks meet. A `leashed` engine dies with the thread that started it.
    `status_fd` is an open descriptor to which bubblewrap writes JSON: the pid of the namespace's PID 1, then
    the exit code.
    """
    return [
        closure.bwrap,
        *([] if status_fd is None else ["--json-status-fd", str(status_fd)]),
        *(["--die-with-parent"] if leashed else []),
        *_isolation(plan.node.name),
        *_environment({**closure.env, **plan.engine.env, **(env or {})}),
        *_root(closure),
        *kernel_folders(plan.engine.shm_mib),
        *_host_paths(plan),
        "--chdir",
        "/root",
        "--",
        *closure.argv,
        *plan.engine.args,
        *args,
    ]


def _isolation(node: str) -> list[str]:
    # A user namespace also when root starts it: the engine then has no capability on the machine, and a build
    # sandbox, where nobody is root, looks the same from inside. Without --as-pid-1 bubblewrap stays PID 1
    # there: it reaps, and the engine keeps the default action of SIGTERM. The network is the node's.
    return [
        *["--unshare-user", "--uid", "0", "--gid", "0", "--cap-drop", "ALL"],
        *["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", node],
        "--new-session",
    ]


def _environment(variables: dict[str, str]) -> list[str]:
    argv = ["--clearenv"]
    for name, value in sorted(variables.items()):
        argv += ["--setenv", name, value]
    return argv


def _root(closure: Closure) -> list[str]:
    argv = []
    for layer in closure.root.layers:
        argv += ["--ro-bind", layer.path, layer.target]
    return argv


def kernel_folders(shm_mib: int) -> list[str]:
    """The arguments for what the kernel makes inside the root: /proc, /dev, and folders in memory (tmpfs)."""
    # SGLang tells by shared memory which ranks share a host, so every node has a /dev/shm of its own.
    # No /sys: a build sandbox has none either, and the root brings what would read it (lscpu).
    return [
        *["--proc", "/proc", "--dev", "/dev"],
        *["--perms", "1777", "--size", str(shm_mib << 20), "--tmpfs", "/dev/shm"],  # noqa: S108 - inside the root
        *["--perms", "1777", "--tmpfs", "/tmp"],  # noqa: S108 - inside the root
        *["--perms", "0755", "--tmpfs", "/run"],
        *["--perms", "0700", "--tmpfs", "/root"],
    ]


def _host_paths(plan: Plan) -> list[str]:
    argv = []
    for device in plan.engine.devices:
        argv += ["--dev-bind", device, device]
    for path in plan.engine.binds:
        argv += ["--ro-bind", path, path]
    return argv


def program(
    closure: Closure, argv: Sequence[str], *, env: Mapping[str, str], binds: Mapping[str, str] | None = None
) -> list[str]:
    """The argv that runs another program in the root of `closure`, killed with the caller: for checks.

    `env` is over the root's; `binds` are paths in the root, each with the path of the machine that it shows.
    """
    return [
        *[closure.bwrap, "--die-with-parent", *_isolation("check")],
        *_environment({**closure.env, **env}),
        *_root(closure),
        *kernel_folders(CHECK_SHM_MIB),
        *(word for target, path in (binds or {}).items() for word in ("--ro-bind", path, target)),
        *["--chdir", "/root", "--", *argv],
    ]
