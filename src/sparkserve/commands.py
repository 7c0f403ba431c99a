"""How commands are spelled: pure functions that make the argv of everything we run on a node.

Each says what it may do to the node (`Safety`), so that a runner can refuse it before it is sent. Nothing
here runs anything; the tests compare whole command lines.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILE = "/nix/var/nix/profiles/sparkserve"
HOLDS = "/nix/var/nix/gcroots/sparkserve"
# On a tmpfs: a power cut, which is what can make a checked path wrong, also forgets that it was checked.
VERIFIED = "/run/sparkserve/verified"
_BOUNDS = {
    # The owner's own settings may have others, for sessions of people.
    "LogLevel": "INFO",
    "RemoteCommand": "none",
    "BatchMode": "yes",
    "ConnectTimeout": "5",
    # A node that lost its power says nothing: without these a command waits for TCP, for 15 minutes.
    "ServerAliveInterval": "2",
    "ServerAliveCountMax": "3",
}


class Safety(IntEnum):
    """What a command may do, each class including those before it."""

    OFFLINE = 0  # stays on this machine
    READS_HOSTS = 1
    CHANGES_HOSTS = 2  # while a running engine goes on
    STOPS_SERVING = 3


@dataclass(frozen=True)
class Command:
    """One command for a node: `argv` as the node's kernel gets it, seconds it may take.

    `resident`: it is a closure's own, and what runs it may stay there for the next (`sparkserve.resident`).
    """

    argv: tuple[str, ...]
    safety: Safety
    timeout_s: float = 30.0
    resident: bool = False

    def line(self) -> str:
        """The argv as one line for the shell at the other end of ssh, which splits it into the same argv."""
        return shlex.join(self.argv)


def reads(*argv: str, timeout_s: float = 30.0) -> Command:
    """A command that only looks."""
    return Command(argv, Safety.READS_HOSTS, timeout_s)


def changes(*argv: str, timeout_s: float = 30.0) -> Command:
    """A command that changes the node and leaves a running engine alone."""
    return Command(argv, Safety.CHANGES_HOSTS, timeout_s)


def ssh(config: str, control: str, node: str, command: Command) -> list[str]:
    """The argv on this machine that runs `command` on `node`, a Host of the ssh_config file `config`.

    `control` is the folder for the shared connection's socket; %C keeps its name short enough for a socket.
    """
    return ["ssh", *_options(config, control), "-T", node, "--", command.line()]


def ssh_close(config: str, control: str, node: str) -> list[str]:
    """The argv on this machine that ends the shared connection to `node`."""
    return ["ssh", "-F", config, "-o", f"ControlPath={control}/%C", "-O", "exit", node]


def ssh_forward(config: str, node: str, port: int, host: str, to: int, command: Command) -> list[str]:
    """The argv on this machine that makes `port` here lead to `host`:`to` as seen from `node`.

    It does while `command` runs there. A connection of its own: a shared one keeps what it forwards for
    others.
    """
    # Without the first, a port that somebody else has taken meanwhile is a warning, and he would be asked.
    settings = {"ExitOnForwardFailure": "yes", **_BOUNDS, "ControlMaster": "no", "ControlPath": "none"}
    way = f"127.0.0.1:{port}:{host}:{to}"
    return ["ssh", "-F", config, *_set(settings), "-L", way, "-T", node, "--", command.line()]


def until_stdin_ends() -> Command:
    """A command that writes an empty line and ends with its stdin."""
    return reads("sh", "-c", "echo; exec cat")


def _options(config: str, control: str) -> list[str]:
    settings = {
        **_BOUNDS,
        "ControlMaster": "auto",
        "ControlPath": f"{control}/%C",
        # Short: what stays in the background after a command must not outlive a `down` by much.
        "ControlPersist": "20",
    }
    return ["-F", config, *_set(settings)]


def _set(settings: Mapping[str, str]) -> list[str]:
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def copy_closure(node: str, path: str) -> Command:
    """The command on this machine that copies the closure of `path` into `node`'s store.

    Paths that are there already are not sent. ssh:// checks no signature (tried), which is right here: the
    paths are named by their contents, which are verified on the node.
    """
    return changes("nix", "copy", "--to", f"ssh://{node}", path, timeout_s=7200)


def copy_options(config: str) -> str:
    """NIX_SSHOPTS for `copy_closure`. Nix splits it at spaces, so `config` must have none."""
    return " ".join(["-F", config, *_set(_BOUNDS)])


def hold(name: str, path: str) -> Command:
    """Make `path` a GC root of the node under `name`. It may be made before the path is there."""
    script = 'mkdir -p "$1" && ln -sfn "$3" "$1/.$2" && mv -T "$1/.$2" "$1/$2"'
    return changes("sh", "-c", script, "hold", HOLDS, name, path)


def sync(folder: str) -> Command:
    """Bring everything written to the file system of `folder` onto the disk."""
    return changes("sync", "-f", folder, timeout_s=600)


def unverified(path: str) -> Command:
    """Those of the closure of `path` that have not been verified since the node's power came on."""
    script = (
        'all=$(nix-store --query --requisites "$1") || exit; '
        'if [ -e "$2" ]; then echo "$all" | grep -vxFf "$2"; else echo "$all"; fi; :'
    )
    return reads("sh", "-c", script, "unverified", path, VERIFIED)


def verify(*paths: str) -> Command:
    """Read every file of `paths` and compare them with Nix's database; exit 2 when one differs."""
    return reads("nix", *FEATURES, "store", "verify", "--no-trust", *paths, timeout_s=3600)


# A node's own nix.conf may not have them switched on.
FEATURES = ("--extra-experimental-features", "nix-command")


def note_verified(*paths: str) -> Command:
    """Remember until power-off that `paths` are verified."""
    script = 'file=$1; shift; mkdir -p "${file%/*}" && printf "%s\\n" "$@" >>"$file"'
    return changes("sh", "-c", script, "note", VERIFIED, *paths)


def restore(path: str) -> Command:
    """Replace the files of the store path `path` by the NAR on stdin; its database entry stays as it is.

    Not delete and copy: a path that another generation also uses can only be deleted with that generation.
    Owner and mode are then as Nix makes them; the time of change is not, which nothing compares.
    """
    script = (
        'new="/nix/store/.sparkserve-$$" && rm -rf "$new" && nix-store --restore "$new" && '
        'chmod -R a-w "$new" && '
        'rm -rf "$1" && mv -T "$new" "$1" && sync -f /nix/store'
    )
    return changes("sh", "-c", script, "restore", path, timeout_s=3600)


def make_current(path: str, held: str) -> Command:
    """Make `path` the node's current generation, on its disk; what `hold` holds as `held` is held by that."""
    script = 'nix-env --profile "$1" --set "$2" && sync -f "${1%/*}" && rm -f "$3/$4"'
    return changes("sh", "-c", script, "current", PROFILE, path, HOLDS, held, timeout_s=600)


def delete_generations(*numbers: str) -> Command:
    """Delete generations of the profile. Nix refuses to delete the current one."""
    return changes("nix-env", "--profile", PROFILE, "--delete-generations", *numbers)


def gc_roots() -> Command:
    """What keeps store paths from being garbage, a line `link -> path` each; also what processes use."""
    return reads("nix-store", "--gc", "--print-roots", timeout_s=600)


def registered() -> Command:
    """Every path in the node's store, as `nix.parse_db` reads it."""
    return reads("nix-store", "--dump-db", timeout_s=600)


def collect_garbage() -> Command:
    """Delete what no GC root leads to."""
    return changes("nix-store", "--gc", timeout_s=3600)


def generations() -> Command:
    """List the profile's generations: one `number path` a line, `current path` for the profile itself."""
    script = (
        'readlink "$1" | sed -n "s/.*-\\([0-9]*\\)-link$/current \\1/p"; '
        'for link in "$1"-*-link; do [ -L "$link" ] || continue; '
        'number="${link%-link}"; echo "${number##*-} $(readlink "$link")"; done'
    )
    return reads("sh", "-c", script, "generations", PROFILE)


def read_closures(*paths: str) -> Command:
    """What host closures say of themselves: of each plan, closure and pins in JSON, a NUL after each."""
    each = 'for name in plan closure pins; do cat "$path/$name.json" 2>/dev/null; printf "\\0"; done'
    return reads("sh", "-c", f"for path; do {each}; done", "read", *paths)


def activate(path: str) -> Command:
    """Put the host closure `path` into effect on the node, and verify it."""
    return changes(f"{path}/bin/activate", timeout_s=180)


def preview(path: str) -> Command:
    """What activating the host closure `path` would change, or why it would be refused; JSON."""
    argv = (f"{path}/bin/activate", "--dry-run", "--json")
    return Command(argv, Safety.READS_HOSTS, 120, resident=True)


def reboot() -> Command:
    """Start the node's kernel anew. The connection ends with it."""
    return Command(("systemctl", "reboot"), Safety.STOPS_SERVING)


def boot_id() -> Command:
    """What is another one after each start of the node's kernel."""
    return reads("cat", "/proc/sys/kernel/random/boot_id")


def ask_group(what: str) -> Command:
    """Ask the group's controller, on the head, for its `status`, or tell it `start` or `stop`; JSON."""
    safety = {"status": Safety.READS_HOSTS, "start": Safety.CHANGES_HOSTS, "stop": Safety.STOPS_SERVING}[what]
    return Command((f"{PROFILE}/bin/sparkserve", "rank", "ask", PROFILE, what), safety)


def wait_group(seen: str, seconds: float) -> Command:
    """The group's status as JSON, as soon as its key is not `seen`."""
    words = ("rank", "wait", PROFILE, seen, "--seconds", f"{seconds:g}")
    # While three engines import on two cores a Python is slow to start: 40 s were seen at a load of 33.
    return reads(f"{PROFILE}/bin/sparkserve", *words, timeout_s=seconds + 90)


def current() -> Command:
    """The host closure that the node's profile points to; exit 1 when there is none."""
    return reads("readlink", "-e", PROFILE)


def shown_units(*units: str) -> Command:
    """For each unit, whether it is active and which command it starts."""
    return reads("systemctl", "show", "--property=Id,ActiveState,ExecStart,NeedDaemonReload", *units)


def look() -> Command:
    """What the node says about itself, the head also about the group; JSON. Bounded: people wait for it."""
    return reads(f"{PROFILE}/bin/sparkserve", "rank", "look", PROFILE, timeout_s=10)


def watch() -> Command:
    """The node's memory and what slows it down, a JSON line each second until the end of stdin."""
    return reads(f"{PROFILE}/bin/sparkserve", "rank", "watch")


def check_fabric() -> Command:
    """What of the node's cables is not as its plan says; JSON. All peers are pinged at once, for 3 s."""
    words = ("fabric", "check", "--plan", f"{PROFILE}/plan.json", "--json")
    return reads(f"{PROFILE}/bin/sparkserve", *words, timeout_s=60)


def drift(*, live: bool, deep: bool) -> Command:
    """How the node is beside its closure; JSON. `live` with its engine, `deep` with every byte read."""
    words = [*(["--live"] if live else []), *(["--deep"] if deep else [])]
    timeout_s = 3600 if deep else 90
    return reads(f"{PROFILE}/bin/sparkserve", "rank", "drift", PROFILE, *words, timeout_s=timeout_s)


def boot_log(lines: int, *, follow: bool = False, after: str = "") -> Command:
    """The last lines of the newest boot's log, or what comes after a place; JSON lines.

    The keys are journalctl's: `__CURSOR` is the place, to go on after it, `MESSAGE` the text. `follow` goes
    on until the end of stdin.
    """
    options = ["--after", after] if after else ["--lines", str(lines)]
    follows = ["--follow"] if follow else []
    return reads(f"{PROFILE}/bin/sparkserve", "rank", "log", *options, *follows)


def journal(unit: str, lines: int, *, follow: bool = False, after: str = "") -> Command:
    """The same of what a systemd unit says."""
    options = ["--no-tail", f"--after-cursor={after}"] if after else [f"--lines={lines}"]
    argv = ["journalctl", "--quiet", "--output=json", "--output-fields=MESSAGE", f"--unit={unit}", *options]
    if not follow:
        return reads(*argv)
    # A shell takes stdin away from what it starts with `&`.
    script = 'exec 3<&0; "$@" 3<&- & i=$!; { cat <&3; kill "$i"; } >/dev/null 2>&1 & wait "$i"'
    return reads("sh", "-c", script, "follow", *argv, "--follow")


def start_units(*units: str) -> Command:
    """Start systemd units; no harm when they run. One that failed before starts afresh."""
    return changes(
        "sh", "-c", 'systemctl reset-failed "$@" 2>/dev/null; exec systemctl start "$@"', "-", *units
    )


def stop_units(*units: str) -> Command:
    """Stop systemd units, and with them what they run; no harm when a node has never had them."""
    known = 'systemctl cat "$unit" >/dev/null 2>&1'
    script = f'for unit; do {known} || continue; systemctl stop "$unit" || exit; done'
    return Command(("sh", "-c", script, "stop", *units), Safety.STOPS_SERVING, 120.0)


def deploy_member(program: str, verb: str, *words: str) -> Command:
    """Ask or tell a node about its deployment; JSON, also of an error.

    `program` is a closure's bin/sparkserve: the target's while a deployment is open. `look` only reads.
    """
    safety = Safety.READS_HOSTS if verb == "look" else Safety.CHANGES_HOSTS
    # A `take` waits 45 s for what was begun, and a Python may be as slow to start as in `wait_group`.
    return Command((program, "deploy", "member", verb, "--json", "--", *words), safety, 150.0, resident=True)


def stay(program: str) -> Command:
    """Start what runs the commands of a closure that has `program`: see `sparkserve.resident`."""
    return reads(f"{program.rpartition('/')[0]}/sparkserve", "deploy", "member", "serve")


def deploy_effect(program: str, id: str, epoch: int, step: str, command: Command) -> Command:
    """`command`, for as long as the node's deployment is `id` at `epoch`; else it ends with DEPLOY.FENCED."""
    argv = (program, "deploy", "member", "do", id, str(epoch), step, "--", *command.argv)
    return Command(argv, command.safety, command.timeout_s + 60, resident=True)


def deactivate(path: str) -> Command:
    """Give back what was on the node before all closures; `path` is any closure of it."""
    return changes(f"{path}/bin/deactivate", timeout_s=180)


def drop_profile() -> Command:
    """Leave the node without a current generation. The generations stay."""
    return changes("rm", "-f", PROFILE)


def held(name: str) -> Command:
    """The store path that `hold` keeps under `name`; exit 1 when there is none."""
    return reads("readlink", "-e", f"{HOLDS}/{name}")


def lacking(*paths: str) -> Command:
    """Those of `paths` that are not in the node's store."""
    return reads("nix-store", "--check-validity", "--print-invalid", *paths, timeout_s=60)
