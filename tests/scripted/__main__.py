"""The scripted engine by hand: `PYTHONPATH=tests python -m scripted --port 9000 --garble 3/100`."""

from __future__ import annotations

import argparse
import dataclasses
import signal
import typing

from scripted import Script, serve


def _pair(text: str) -> tuple[int, int]:
    first, _, second = text.replace("x", "/").partition("/")
    return int(first), int(second)


def main() -> None:
    """Each field of Script is an option; a pair is written 3/100 or 40x8."""
    parser = argparse.ArgumentParser(prog="python -m scripted", description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    types = typing.get_type_hints(Script)
    for field in dataclasses.fields(Script):
        flag, kind = f"--{field.name.replace('_', '-')}", types[field.name]
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default)
        elif kind == tuple[int, int]:
            parser.add_argument(flag, type=_pair, default=field.default)
        elif typing.get_origin(kind) is typing.Literal:
            parser.add_argument(flag, choices=typing.get_args(kind), default=field.default)
        elif kind in (int, float, str):
            parser.add_argument(flag, type=kind, default=field.default)
        elif kind == float | None:
            parser.add_argument(flag, type=float, default=None)
    given = vars(parser.parse_args())
    port = given.pop("port")
    with serve(Script(**given), port) as endpoint:
        print(endpoint, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
