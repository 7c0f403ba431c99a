"""Keys and ports: who can read the one, who can reach the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import RESTARTED, NotApplicable, Verdict, check, quoted, want

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

_SECRET_NAME = re.compile(
    r"(^|/)(\.env|id_rsa|id_ed25519|credentials\.json|[^/]+\.(pem|key)|[^/]+\.local\.(env|json))$"
)


_KEY = re.compile(r"(?i)key|token|secret|password")


@check(
    "SECURITY.KEY_FILE",
    "Files with keys in /etc/sparkserve can be read by their owner only.",
    "error",
    "mia",
    fix="sudo chmod 600 FILE",
)
def key_file(n: Node) -> Verdict:
    folder = "/etc/sparkserve"
    names = n.names(folder) if n.exists(folder) else []
    modes = {name: n.stat(f"{folder}/{name}")["mode"] for name in names if _KEY.search(name)}
    if not modes:
        raise NotApplicable(f"{folder} has no keys")
    wrong = [f"{folder}/{name}" for name, mode in modes.items() if int(mode, 8) & 0o077]
    found = " ".join(f"{name} {mode}" for name, mode in modes.items())
    return want(not wrong, expected="0600", found=found, where=folder, fix=f"sudo chmod 600 {quoted(*wrong)}")


@check(
    "SECURITY.KEY_IN_ARGUMENTS",
    "No engine has a key on its command line: every user of the host can read that.",
    "error",
    "mia",
    fix="give the key by file; restart that engine without the option",
)
def key_in_arguments(n: Node) -> Verdict:
    wrong = [
        str(pid)
        for pid in n.engines()
        if any(re.fullmatch(r"--(admin-)?api-key(=.*)?", word) for word in n.command(pid))
    ]
    return want(not wrong, expected="none", found=" ".join(wrong) or "none", where="/proc/*/cmdline")


@check(
    "SECURITY.OPEN_API",
    "The API listens on loopback, or where serving.host says: never elsewhere on management, Wi-Fi, cables.",
    "error",
    "issues, ours",
    fix=f'serving.host = "127.0.0.1" in fleet.nix, {RESTARTED}; reach it over ssh -L',
)
def open_api(n: Node) -> Verdict:
    port = int(n.plan("serving", "port"))
    said = f"{n.plan('serving', 'host')}:{port}"
    listen = [f"{host}:{used}" for host, used in n.listening() if used == port]
    wrong = [each for each in listen if each != said and not re.match(r"127\.|\[::1\]", each)]
    found = " ".join(wrong) or "nowhere else" if listen else "nobody listens"
    return want(not wrong, expected=said, found=found, where="ss -ltn")


@check(
    "SECURITY.SECRETS",
    "No file that looks like a secret is tracked in the checkout: a closure and a clone would carry it.",
    "error",
    "owen",
    fix="git rm --cached FILE, then change that secret: git keeps what was committed",
)
def secrets(n: Node) -> Verdict:
    if n.checkout is None:
        raise NotApplicable("this is not run from a checkout")
    names = n.run("git", "-C", n.checkout, "ls-files").splitlines()
    wrong = [name for name in names if _SECRET_NAME.search(name)]
    fix = f"git rm --cached -- {quoted(*wrong)}, then change that secret: git keeps what was committed"
    return want(
        not wrong, expected="none", found=" ".join(wrong[:5]) or "none", where="git ls-files", fix=fix
    )
