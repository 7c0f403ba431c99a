"""Builder of what starts a node's engine: a folder with plan.json and closure.json.

in (environment): node, plans (JSON, all nodes of the fleet), given (JSON: argv, env, bwrap, guard, layers and
harness with files that hold their digests).
"""

import hashlib
import json
import os
from pathlib import Path


def digest_of(value) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


plans = json.loads(os.environ["plans"])
given = json.loads(os.environ["given"])

layers = [
    {
        "name": layer["name"],
        "target": layer["target"],
        "path": layer["path"],
        "diff_id": f"sha256:{Path(layer['digest']).read_text()}",
    }
    for layer in given["layers"]
]
# Paths are left out: they differ between builders even when every byte is equal.
root = digest_of([[layer["target"], layer["diff_id"]] for layer in layers])
harness = Path(given["harness"]["digest"]).read_text()
guard = given["guard"] and hashlib.sha256(Path(given["guard"]).read_bytes()).hexdigest()
of = {"plans": plans, "root": root, "harness": harness, "guard": guard}

closure = {
    "schema": "sparkserve.closure/1",
    "fleet_id": digest_of({**of, "argv": given["argv"], "env": given["env"]}),
    "root": {"digest": f"sha256:{root}", "layers": layers},
    "argv": given["argv"],
    "env": given["env"],
    "bwrap": given["bwrap"],
    "guard": given["guard"],
    "harness": {"digest": f"sha256:{harness}", "path": given["harness"]["path"]},
}

out = Path(os.environ["out"])
out.mkdir()
for name, value in (("plan.json", plans[os.environ["node"]]), ("closure.json", closure)):
    (out / name).write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
