"""uv as the resolver of wheels: unlike pip, it evaluates markers for the target and not for this machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.pins.pip import local_build_hint

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sparkserve.pins.model import Target
    from sparkserve.pins.pip import Places

_TAIL = 1500


def resolve(
    target: Target,
    requests: Collection[str],
    *,
    constraints: Sequence[str],
    excludes: Sequence[str],
    preferred: Sequence[str] = (),
    where: Places,
) -> list[str]:
    """The exact requirements (`name==version`) that `requests` and their dependencies come to on `target`.

    `excludes`: names that are cut, with what only they need. `preferred`: exact requirements that are taken
    where nothing needs another version. Raises `PIN.RESOLVE`.
    """
    import uv

    argv = [uv.find_uv_bin(), "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate"]
    argv += ["--python-platform", f"{target.machine}-manylinux_{target.glibc.replace('.', '_')}"]
    argv += ["--python-version", target.python, "--no-build", "--no-python-downloads"]
    # As pip chooses: the best version over all places, not the first place that has the name.
    argv += ["--index-strategy", "unsafe-best-match", "--cache-dir", str(checkout.state() / "uv")]
    argv += where.options()
    if "index-url" in where.settings:
        argv += ["--index-url", where.settings["index-url"]]
    if where.settings.get("no-index") in ("1", "true", "True", "yes", "on"):
        argv += ["--no-index"]
    environment = dict(os.environ)
    if "cert" in where.settings:
        environment.setdefault("SSL_CERT_FILE", where.settings["cert"])
    with tempfile.TemporaryDirectory() as folder:
        for option, lines in (("--constraints", constraints), ("--excludes", excludes)):
            file = Path(folder) / option.strip("-")
            file.write_text("".join(f"{line}\n" for line in lines))
            argv += [option, str(file)]
        if preferred:
            # What uv prefers is what stands in the file that it is to write.
            output = Path(folder) / "output"
            output.write_text("".join(f"{line}\n" for line in preferred))
            argv += ["--output-file", str(output)]
        asked = "\n".join(requests)
        done = subprocess.run(argv, input=asked, capture_output=True, text=True, env=environment)
        resolved = output.read_text() if preferred else done.stdout
    if done.returncode != 0:
        raise SparkserveError(
            "PIN.RESOLVE",
            expected="versions that satisfy all wheel requests",
            found=done.stderr.strip()[-_TAIL:],
            where=f"uv for Python {target.python}, glibc {target.glibc}",
            do=f"Change the requests of the profile. {local_build_hint(requests)}".strip(),
        )
    return resolved.split()
