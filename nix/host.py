"""Builder of a host closure: plan.json, closure.json, the node's units and files, and the harness that reads
them.

in (environment): node, plans (JSON, all nodes of the fleet), closure (JSON: argv, env, bwrap, guard, layers
and harness with files that hold their digests), sparkserve (the harness).
"""

import hashlib
import json
import os
from pathlib import Path


def canonical(value) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest_of(value) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


out = Path(os.environ["out"])
plans = json.loads(os.environ["plans"])
given = json.loads(os.environ["closure"])

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
harness = Path(given["harness"]).read_text()
guard = given["guard"] and hashlib.sha256(Path(given["guard"]).read_bytes()).hexdigest()

closure = {
    "schema": "sparkserve.closure/1",
    "fleet_id": digest_of({"plans": plans, "root": root, "harness": harness, "guard": guard}),
    "root": {"digest": f"sha256:{root}", "layers": layers},
    "argv": given["argv"],
    "env": given["env"],
    "bwrap": given["bwrap"],
    "guard": given["guard"],
    "harness": {"digest": f"sha256:{harness}", "path": os.environ["sparkserve"]},
}

out.mkdir()
for name, value in (("plan.json", plans[os.environ["node"]]), ("closure.json", closure)):
    (out / name).write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
host = plans[os.environ["node"]]["host"]
texts = {f"units/{name}": text for name, text in host["units"].items()}
texts |= {f"files{path}": file["text"] for path, file in host["files"].items()}
for name, text in texts.items():
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text.replace("@out@", str(out)))
(out / "bin").mkdir()
(out / "bin/sparkserve").symlink_to(Path(os.environ["sparkserve"]) / "bin/sparkserve")
if given["guard"]:
    (out / "bin/guard").symlink_to(given["guard"])
if any(host[name] for name in ("units", "files", "mask", "default_target", "sysctls", "kernel_args")):
    for name in ("activate", "deactivate"):
        program = out / "bin" / name
        program.write_text(
            f"#!{os.environ['sparkserve']}/bin/python3 -I\n"
            "from sparkserve.host.activate import main\n\n"
            f'main("{out}", "{name}")\n'
        )
        program.chmod(0o755)
