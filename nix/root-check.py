"""Builder of what is known of an engine root: root.json, or a failed build that names every broken rule.

in (environment): layers (JSON: name, target and tree of each, those below first), texts (JSON: name to file),
rules (JSON, see sparkserve.roots.judge).
"""

import json
import os
import sys
from pathlib import Path

from sparkserve.roots.judge import judge, refusal
from sparkserve.roots.tree import Root

layers = json.loads(os.environ["layers"])
texts = {name: Path(file).read_text() for name, file in json.loads(os.environ["texts"]).items()}
rules = json.loads(os.environ["rules"])

root = Root((layer["target"], Path(layer["tree"])) for layer in layers)
found = judge(root, rules, texts)
if line := refusal(os.environ["name"], found):
    for rule, problems in found.items():
        print("".join(f"{rule}: {problem}\n" for problem in problems), end="", file=sys.stderr)
    sys.exit(line)


def size(tree: Path) -> int:
    return sum(path.lstat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


about = {
    "schema": "sparkserve.root/1",
    "rules": list(found),
    "elf_files": len(root.elves),
    "layers": [{"name": each["name"], "bytes": size(Path(each["tree"]))} for each in layers],
}
out = Path(os.environ["out"])
out.mkdir()
(out / "root.json").write_text(json.dumps(about, indent=2, sort_keys=True) + "\n")
