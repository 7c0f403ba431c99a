"""Builder of the check: qualifies the engine's root, then one with a byte of SGLang changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from sparkserve.adapters import plugin, report
from sparkserve.engine import closure, qualify, runner

TARGET = "sglang.srt.distributed.parallel_state.GroupCoordinator.all_reduce"
FILE = "lib/sglang/srt/distributed/parallel_state.py"
# In the docstring of all_reduce and nowhere else: not even code has to change.
BEFORE, AFTER = b"User-facing all-reduce function before", b"User-facing all-reduce function Before"

real = closure.load(Path(os.environ["closure"]))
qualified = qualify.qualify(real)
if qualified.wrong():
    sys.exit(str(qualify.drifted(qualified.wrong())))

site = next(layer for layer in real.root.layers if layer.name == "site")
text = Path(site.path, FILE).read_bytes()
assert text.count(BEFORE) == 1
changed = Path.cwd() / "parallel_state.py"
changed.write_bytes(text.replace(BEFORE, AFTER))
binds = {f"{site.target}/{FILE}": str(changed)}

wrong = [each.target for each in qualify.qualify(real, binds=binds).wrong()]
assert wrong == [TARGET], wrong

adapters = [{"name": "oneshot-collectives", "settings": {}}]
boot = {"schema": plugin.SCHEMA, "rank": 0, "size": 3, "adapters": adapters, "links": []}
argv = runner.program(
    real,
    ["/usr/bin/python3.11", "-c", "from sglang.srt import plugins; plugins.load_plugins(); print('went on')"],
    env={"SGLANG_USE_CPU_ENGINE": "1", plugin.VARIABLE: json.dumps(boot)},
    binds=binds,
)
ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
assert ran.returncode == report.EXIT["refused"], ran
assert "went on" not in ran.stdout, ran
(line,) = [
    json.loads(each.removeprefix(report.PREFIX)) for each in ran.stderr.splitlines() if report.PREFIX in each
]
assert (line["event"], line["adapter"]) == ("refused", "oneshot-collectives"), line
assert TARGET in line["reason"], line

Path(os.environ["out"]).touch()
