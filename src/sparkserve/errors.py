"""The one exception tree: every error a user can meet has a stable id and its own exit code.

Ids and exit codes are an interface: scripts match on them, so neither is ever renumbered. The entry script
`./sparkserve` raises the `HOST.*` ones before Python exists and uses the same numbers.
"""

from __future__ import annotations

EXIT_CODES: dict[str, int] = {
    "CLI.USAGE": 2,
    "HOST.ROOT": 10,
    "HOST.NAMESPACES": 11,
    "HOST.DISK": 12,
    "HOST.PORT": 13,
    "HOST.PACKAGE": 14,
    "HOST.SYSTEM": 15,
    "HOST.NETWORK": 16,
    "PIN.MISSING": 20,
    "PIN.HASH": 21,
    "PIN.RESOLVE": 22,
    "PIN.FETCH": 23,
    "PIN.PROFILE": 24,
    "ROOT.CHECK": 25,
    "PIN.INDEX": 26,
    "PIN.AFFECTED": 27,
    "PIN.ADVISORIES": 28,
    "FLEET.OPTION": 30,
    "FLEET.ASSERTION": 31,
    "FLEET.UNTRACKED": 32,
    "FLEET.NAME": 33,
    "FLEET.EVAL": 34,
    "PLAN.SCHEMA": 35,
    "NIX.BUILD": 40,
    "NIX.EVAL": 41,
    "IMAGE.DAMAGED": 42,
    "IMAGE.LAYOUT": 43,
    "ENGINE.START": 50,
    "ENGINE.READY": 51,
    "ENGINE.STATE": 52,
    "SMOKE.ANSWER": 53,
    "GROUP.STATE": 54,
    "GROUP.BOOT": 55,
    "ADAPTER.NAME": 56,
    "ADAPTER.DRIFT": 57,
    "CHECK.FAILED": 60,
    "CHECK.NAME": 61,
    "DOCTOR.FAILED": 62,
    "FABRIC.CHECK": 63,
    "GUARD.STATE": 64,
    "GATE.FAILED": 65,
    "GATE.EVIDENCE": 66,
    "NODE.SAFETY": 70,
    "NODE.UNREACHABLE": 71,
    "NODE.COMMAND": 72,
    "NODE.STORE": 73,
    "NODE.ACTIVATE": 74,
    "NODE.REBOOT": 75,
    "NODE.CLOSURE": 76,
    "NODE.FOREIGN": 77,
    "BENCH.RESULT": 80,
    "BENCH.FOREIGN": 81,
    "BENCH.MEMORY": 82,
    "BENCH.REGRESSION": 83,
    "BENCH.REQUEST": 84,
    "DEPLOY.PLAN": 90,
    "DEPLOY.LEASE": 91,
    "DEPLOY.FENCED": 92,
    "DEPLOY.JOURNAL": 93,
    "DEPLOY.HEAD": 94,
    "DEPLOY.UNDONE": 95,
    "DEPLOY.OPEN": 96,
    "DEPLOY.BASE": 97,
    "VERIFY.DRIFT": 98,
    "DEPLOY.NOTHING": 99,
    "KEY.FILE": 100,
    "KEY.REFUSED": 101,
    "BASELINE.NAME": 102,
    "BASELINE.FILE": 103,
}


class SparkserveError(Exception):
    """An error that a user can act on.

    `id` is a key of `EXIT_CODES`; the four texts are one short sentence each.
    """

    def __init__(self, id: str, *, expected: str, found: str, where: str, do: str) -> None:
        self.id = id
        self.exit_code = EXIT_CODES[id]
        self.expected = expected
        self.found = found
        self.where = where
        self.do = do
        super().__init__(f"{id}: expected {expected}; found {found}; where: {where}. {do}")

    def as_dict(self) -> dict[str, str | int]:
        """The form that `--json` prints."""
        return {
            "error": self.id,
            "exit_code": self.exit_code,
            "expected": self.expected,
            "found": self.found,
            "where": self.where,
            "do": self.do,
        }


def not_root(where: str) -> SparkserveError:
    """The error for a missing right to write."""
    return SparkserveError(
        "HOST.ROOT",
        expected="to run as root",
        found="no right to write",
        where=where,
        do="Run the same command with sudo.",
    )
