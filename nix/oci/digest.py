"""Builder: the sha256 of a folder's canonical tar, in hex. in (environment): tree, target."""

import hashlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from canonical_tar import write

sha256 = hashlib.sha256()
write(Path(os.environ["tree"]), os.environ["target"], sha256.update)
Path(os.environ["out"]).write_text(sha256.hexdigest())
