"""Builder: lays folders and files out as in the checkout and runs each command (a Python module and its
arguments) there.

in (environment): folders (JSON: name -> path), project (pyproject.toml), commands (JSON list), programs
(a folder for PATH).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

tree = Path("checkout")
for name, path in json.loads(os.environ["folders"]).items():
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    if Path(path).is_dir():
        shutil.copytree(path, tree / name, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(path, tree / name)
shutil.copyfile(os.environ["project"], tree / "pyproject.toml")
for folder in [tree, *tree.rglob("*")]:
    if folder.is_dir():
        folder.chmod(0o755)

environment = {**os.environ, "HOME": str(Path.cwd()), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
environment["PATH"] += f":{os.environ['programs']}"
for command in json.loads(os.environ["commands"]):
    code = subprocess.run([sys.executable, "-m", *command], cwd=tree, env=environment).returncode
    if code:
        sys.exit(code)
Path(os.environ["out"]).touch()
