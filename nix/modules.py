"""Builder of a folder of Python modules with their bytecode, as a read-only store cannot get it later.

in (environment): sources (folder to copy), place (where it will be found, for tracebacks), links (JSON: name
to the store path that it links to).
"""

import compileall
import json
import os
import shutil
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

out = Path(os.environ["out"])
# copyfile, not copy: modes in the store are read-only and would make the copy's folders read-only too.
shutil.copytree(os.environ["sources"], out, copy_function=shutil.copyfile)
for folder in [out, *out.rglob("*")]:
    if folder.is_dir():
        folder.chmod(0o755)
good = compileall.compile_dir(
    out,
    quiet=1,
    force=True,
    workers=1,
    stripdir=str(out),
    prependdir=os.environ["place"],
    invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
)
if not good:
    sys.exit("a module does not compile")
for name, path in json.loads(os.environ["links"]).items():
    (out / name).symlink_to(path)
