"""Builder of a Python environment that runs from its store path.

in (environment): libDir, home (folder of the interpreter), site (unpacked wheels), above (other
environments), packages (JSON: name to folder), program (module:function that bin/ gets under the
environment's name).
"""

import json
import os
from pathlib import Path

out = Path(os.environ["out"])
modules = out / os.environ["libDir"]
modules.mkdir(parents=True)
(out / "bin").mkdir()
(out / "bin/python3").symlink_to(Path(os.environ["home"]) / "python3.11")
(out / "pyvenv.cfg").write_text(f"home = {os.environ['home']}\ninclude-system-site-packages = false\n")

paths = [site for site in [os.environ["site"], *os.environ["above"].split()] if site]
# A .pth line is read by `site` at start; the order of lines is the order of lookup.
(modules / "closure.pth").write_text("".join(f"{Path(site) / os.environ['libDir']}\n" for site in paths))
for above in os.environ["above"].split():
    nested = Path(above) / os.environ["libDir"] / "closure.pth"
    # A .pth file is only read in the first folder, so the lines of environments above are repeated here.
    with (modules / "closure.pth").open("a") as pth:
        pth.write(nested.read_text())

# uv and ruff are programs that their Python modules look for in the environment's own bin/.
for site in paths:
    for program in sorted((Path(site) / "bin").glob("*")):
        if program.name != "python3":
            (out / "bin" / program.name).symlink_to(program)

for name, path in json.loads(os.environ["packages"]).items():
    (modules / name).symlink_to(path)

if os.environ["program"]:
    module, function = os.environ["program"].split(":")
    script = out / "bin" / os.environ["name"]
    script.write_text(f"#!{out}/bin/python3 -I\nfrom {module} import {function}\n\n{function}()\n")
    script.chmod(0o755)
