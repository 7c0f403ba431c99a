"""What deploy-rs sends to a node, as its d5eff7f makes it (src/deploy.rs, make_lock_path, src/cli.rs).

Pure: from a value of the flake output `deploy`, narrowed to a target, to whole command lines for a shell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Deploy = dict[str, Any]


class Target(NamedTuple):
    """One profile of one node. What is set nearest to the profile counts, but for options of ssh: all do."""

    deploy: Deploy
    node: str
    profile: str = "sparkserve"
    override: dict[str, Any] = {}  # noqa: RUF012 - of a call; nobody writes to it

    def setting(self, name: str, default: Any = None) -> Any:
        levels = (self.override, self._profile, self._node, self.deploy)
        return next((level[name] for level in levels if name in level), default)

    @property
    def _node(self) -> dict[str, Any]:
        found: dict[str, Any] = self.deploy["nodes"][self.node]
        return found

    @property
    def _profile(self) -> dict[str, Any]:
        found: dict[str, Any] = self._node["profiles"][self.profile]
        return found

    @property
    def closure(self) -> str:
        return str(self._profile["path"])

    @property
    def canary(self) -> str:
        name = self.closure.removeprefix("/nix/store/").partition("-")[0]
        return f"{self.setting('tempPath', '/tmp')}/deploy-rs-canary-{name}"  # noqa: S108 - its default

    def ssh(self, line: str) -> list[str]:
        """The argv at the deployer that sends `line`."""
        levels = (self._profile, self._node, self.deploy)
        options = [word for level in levels for word in level.get("sshOpts", [])]
        return ["ssh", f"{self.setting('sshUser')}@{self._node['hostname']}", *options, line]

    def activate(self, *flags: str) -> str:
        """`flags` of deploy-rs itself: --dry-activate, --boot."""
        words = ["activate", f"'{self.closure}'", self._where(), f"--temp-path '{self._temp()}'"]
        words.append(f"--confirm-timeout {self.setting('confirmTimeout', 30)}")
        words += ["--magic-rollback"] if self.setting("magicRollback", True) else []
        words += ["--auto-rollback"] if self.setting("autoRollback", True) else []
        return self._line(*words, *flags)

    def wait(self) -> str:
        words = ["wait", f"'{self.closure}'", f"--temp-path '{self._temp()}'"]
        seconds = self.setting("activationTimeout")
        return self._line(*words, *([f"--activation-timeout {seconds}"] if seconds is not None else []))

    def confirm(self) -> str:
        return f"{self._sudo()}rm {self.canary}"

    def revoke(self) -> str:
        return self._line("revoke", self._where())

    def _line(self, *words: str) -> str:
        logs = (["--debug-logs"] if self.setting("debugLogs") else []) + (
            [f"--log-dir {self.setting('logDir')}"] if self.setting("logDir") else []
        )
        return self._sudo() + " ".join([f"{self.closure}/activate-rs", *logs, *words])

    def _sudo(self) -> str:
        user, ssh_user = self.setting("user"), self.setting("sshUser")
        return "" if user in (None, ssh_user) else f"{self.setting('sudo', 'sudo -u')} {user} "

    def _where(self) -> str:
        if path := self._profile.get("profilePath"):
            return f"--profile-path '{path}'"
        user = self.setting("user") or self.setting("sshUser")
        return f"--profile-user {user} --profile-name {self.profile}"

    def _temp(self) -> str:
        return str(self.setting("tempPath", "/tmp"))  # noqa: S108 - its default
