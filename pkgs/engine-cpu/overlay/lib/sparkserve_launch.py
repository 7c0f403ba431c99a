"""Starts SGLang's server as `python -m sglang.launch_server` does, sooner.

Children are forked, not spawned: a spawned child imports the 6,000 modules of SGLang again, for the scheduler
and for the detokenizer. Safe here because the parent has no accelerator context and runs no inference; an
accelerator engine must spawn (CUDA does not survive a fork) and does not use this file.

The garbage collector rests during the imports, which make objects that live as long as the process: a quarter
of the import time is collections that find nothing. Frozen, they also stay shared with the forked children.
"""

import gc
import importlib
import multiprocessing
import runpy

_set_start_method = multiprocessing.set_start_method


def _fork(method, force=False):
    _set_start_method("fork", force=force)


if __name__ == "__main__":
    gc.disable()
    importlib.import_module("sglang.srt.entrypoints.http_server")
    gc.freeze()
    gc.enable()
    multiprocessing.set_start_method = _fork
    runpy.run_module("sglang.launch_server", run_name="__main__", alter_sys=True)
