"""Builder of a host closure: plan.json, closure.json, pins.json, the node's units and files, and the harness
that reads them.

in (environment): closure (what closure.nix makes), sparkserve (the harness), guard (the memory guard's
program, empty for a plan without), pins (JSON: lists by name).
"""

import json
import os
import shutil
from pathlib import Path

out = Path(os.environ["out"])
out.mkdir()
for name in ("plan.json", "closure.json"):
    shutil.copyfile(Path(os.environ["closure"]) / name, out / name)
(out / "pins.json").write_text(json.dumps(json.loads(os.environ["pins"]), indent=2, sort_keys=True) + "\n")
host = json.loads((out / "plan.json").read_text())["host"]
texts = {f"units/{name}": text for name, text in host["units"].items()}
texts |= {f"files{path}": file["text"] for path, file in host["files"].items()}
for name, text in texts.items():
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text.replace("@out@", str(out)))
(out / "bin").mkdir()
(out / "bin/sparkserve").symlink_to(Path(os.environ["sparkserve"]) / "bin/sparkserve")
if os.environ["guard"]:
    (out / "bin/guard").symlink_to(os.environ["guard"])
# People and `sparkserve` activate by those in bin/, deploy-rs by the others: it looks for them at the top.
PROGRAMS = {
    "bin/activate": ("host.activate", '"activate"'),
    "bin/deactivate": ("host.activate", '"deactivate"'),
    "deploy-rs-activate": ("deployrs.script", ""),
    "activate-rs": ("deployrs.activate", ""),
}
if any(host[name] for name in ("units", "files", "mask", "default_target", "sysctls", "kernel_args")):
    for name, (module, word) in PROGRAMS.items():
        program = out / name
        arguments = ", ".join(filter(None, [f'"{out}"', word]))
        program.write_text(
            f"#!{os.environ['sparkserve']}/bin/python3 -I\n"
            f"from sparkserve.{module} import main\n\n"
            f"main({arguments})\n"
        )
        program.chmod(0o755)
