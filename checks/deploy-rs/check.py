"""in (environment): all and one (values of `deploy` in JSON: every node, and one with its real path), closure
(that node's), golden (a file: what `all` is for local-triangle).
"""

import json
import os
import subprocess
from pathlib import Path

from jsonschema import Draft201909Validator

schema = Draft201909Validator(json.loads(Path(__file__).with_name("schema.json").read_text()))
deploys = {name: json.loads(os.environ[name]) for name in ("all", "one")}
for deploy in deploys.values():
    schema.validate(deploy)
    for node in deploy["nodes"].values():
        assert list(node["profiles"]) == ["sparkserve"], node
golden = json.loads(Path(os.environ["golden"]).read_text())
known = {name: node for name, node in deploys["all"]["nodes"].items() if name in golden["nodes"]}
assert {**deploys["all"], "nodes": known} == golden, json.dumps({**deploys["all"], "nodes": known}, indent=2)

closure = Path(os.environ["closure"])
(node,) = deploys["one"]["nodes"].values()
assert node["profiles"]["sparkserve"]["path"] == str(closure), node
for name in ("deploy-rs-activate", "activate-rs"):
    done = subprocess.run([closure / name, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.lower().startswith(f"usage: {name}"), done
Path(os.environ["out"]).touch()
