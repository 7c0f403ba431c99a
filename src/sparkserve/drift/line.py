"""The command line of bubblewrap taken apart: what it says about environment, mounts and isolation. Pure.

So `engine/runner.py` is the only place that knows how an engine is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# How many words follow an option; none for all others that the runner uses.
_WORDS = {
    **dict.fromkeys(("--setenv", "--ro-bind", "--dev-bind", "--bind"), 2),
    **dict.fromkeys(("--uid", "--gid", "--cap-drop", "--hostname", "--chdir", "--json-status-fd"), 1),
    **dict.fromkeys(("--proc", "--dev", "--tmpfs", "--perms", "--size"), 1),
}
_MOUNTS = ("--ro-bind", "--dev-bind", "--bind", "--proc", "--dev", "--tmpfs")
# What makes environment and mounts: these are looked at where they take effect.
_SEEN = (*_MOUNTS, "--perms", "--size", "--setenv", "--clearenv")
STATUS = "--json-status-fd"


class Wanted(NamedTuple):
    """A mount as it is to be: `kind` is bubblewrap's option, `source` of the machine, `size` in bytes."""

    kind: str
    source: str = ""
    size: int | None = None

    def __str__(self) -> str:
        size = "" if self.size is None else f" of {self.size >> 20} MiB"
        return {
            "--ro-bind": f"{self.source}, read-only",
            "--dev-bind": self.source,
            "--bind": self.source,
            "--proc": "a proc of its own",
            "--dev": "a /dev of its own",
        }.get(self.kind, f"a tmpfs{size}")


class Line(NamedTuple):
    """`options` are bubblewrap's, each with its words, its program the first; `words` is what it runs."""

    options: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """The environment that the engine gets. bubblewrap itself adds where it is."""
        given = {option[1]: option[2] for option in self.options if option[0] == "--setenv"}
        places = [option[1] for option in self.options if option[0] == "--chdir"]
        return given | ({"PWD": places[-1]} if places else {})

    @property
    def mounts(self) -> dict[str, Wanted]:
        """What is to be mounted, by place; what comes later is over what was there."""
        found: dict[str, Wanted] = {}
        size: int | None = None
        for option in self.options:
            if option[0] == "--size":
                size = int(option[1])
            elif option[0] in _MOUNTS:
                found[option[-1]] = Wanted(option[0], option[1] if len(option) > 2 else "", size)
                size = None
        return found

    @property
    def isolation(self) -> list[str]:
        """Everything else, an option a text: the program, namespaces, capabilities, names."""
        return [" ".join(option) for option in self.options if option[0] not in _SEEN]

    @property
    def status(self) -> int | None:
        """The descriptor that it reports to, which is another one at each start."""
        return next((int(o[1]) for o in self.options if o[0] == STATUS and o[1:] and o[1].isdecimal()), None)


def parse(words: Sequence[str]) -> Line:
    """The line of which `words` are program and arguments; also of one that is not as the runner makes it."""
    if not words:
        return Line((), ())
    options: list[tuple[str, ...]] = [(words[0],)]
    place = 1
    while place < len(words) and words[place] != "--":
        end = place + 1 + _WORDS.get(words[place], 0)
        options.append(tuple(words[place:end]))
        place = end
    return Line(tuple(options), tuple(words[place + 1 :]))
