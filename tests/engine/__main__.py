"""Runs the tests of this folder inside the engine's root, which has no pytest: every function test_*."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import time
import traceback
from pathlib import Path

failed = 0
for file in sorted(Path(__file__).parent.glob("test_*.py")):
    module = importlib.import_module(file.stem)
    for name in [name for name in vars(module) if name.startswith("test_")]:
        begin, said = time.monotonic(), io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                getattr(module, name)()
            word = "passed"
        except Exception:
            failed += 1
            word = f"FAILED\n{said.getvalue()}{traceback.format_exc()}"
        print(f"{file.stem}.{name}: {word} {time.monotonic() - begin:.1f} s", flush=True)
sys.exit(1 if failed else 0)
