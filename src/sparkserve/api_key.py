"""Keys of an endpoint, from a file that only its owner can read. Errors tell its path, never a line of it."""

from __future__ import annotations

import ctypes
import os
import re
from typing import TYPE_CHECKING

from sparkserve import given
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

STORE = "/nix/store"
MOST = 64 * 1024  # bytes of a file
# Shorter ones can be guessed by asking; what is not visible ASCII does not come through a header as it was.
_KEY = re.compile(r"[!-~]{16,512}")
PR_SET_DUMPABLE = 4  # of linux/prctl.h; Python has no name for it


def read(path: Path) -> tuple[str, ...]:
    """The keys in a file, one a line, without empty lines and those that begin with #.

    Raises `KEY.FILE` unless it is a regular file outside the store, of root or of ours, that nobody else may
    read or write, with a key and no line that cannot be one. This process leaves no core dump from now on.
    """
    # Not RLIMIT_CORE: a handler of the system's, such as apport, may not look at it.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        found = path.resolve(strict=True)
        if found.is_relative_to(STORE):
            raise _wrong(path, f"{found}, which everybody can read", "Put it elsewhere, and change that key.")
        with given.opened(found) as file:
            has = os.fstat(file.fileno())
            if has.st_uid not in (0, os.geteuid()):
                raise _wrong(path, f"a file of user {has.st_uid}", f"sudo chown root {path}")
            if has.st_mode & 0o077:
                raise _wrong(path, f"mode {has.st_mode & 0o7777:04o}", f"sudo chmod 600 {path}")
            data = file.read(MOST + 1)
    except OSError as error:
        raise _wrong(path, error.strerror or str(error), _MAKE.format(path)) from None
    except (ValueError, RuntimeError) as error:  # no regular file; links in a circle
        raise _wrong(path, str(error), _MAKE.format(path)) from None
    if len(data) > MOST:
        raise _wrong(path, f"more than {MOST >> 10} KiB", _MAKE.format(path))
    lines = [line.strip() for line in data.decode("latin-1").split("\n")]
    keys = {number: line for number, line in enumerate(lines, 1) if line and not line.startswith("#")}
    for number, key in keys.items():
        if not _KEY.fullmatch(key):
            raise _wrong(path, f"something else in line {number}", _MAKE.format(path))
    if not keys:
        raise _wrong(path, "none", _MAKE.format(path))
    return tuple(keys.values())


def headers(path: Path | None) -> dict[str, str]:
    """The header fields that show the first key of a file; none without a file. Raises as `read`."""
    return {} if path is None else {"Authorization": f"Bearer {read(path)[0]}"}


def refused(endpoint: str) -> SparkserveError:
    """The error for an endpoint that answered 401."""
    return SparkserveError(
        "KEY.REFUSED",
        expected="the endpoint to take our key",
        found="HTTP 401",
        where=endpoint,
        do="Name the file with a key of it: --api-key-file FILE, or SPARKSERVE_API_KEY_FILE.",
    )


_MAKE = "(umask 077; openssl rand -hex 32 > {}) makes one; a client names its own with --api-key-file."


def _wrong(path: Path, found: str, do: str) -> SparkserveError:
    return SparkserveError(
        "KEY.FILE",
        expected="a file with mode 0600 and a key of 16 to 512 visible characters on each line",
        found=found,
        where=str(path),
        do=do,
    )
