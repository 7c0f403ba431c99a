"""Starts SGLang's server as `python -m sglang.launch_server` does, with child processes forked, not spawned.

A spawned child imports the 5,600 modules of SGLang again, about 15 CPU seconds each for the scheduler and
the detokenizer. A forked one has them. Safe here because the parent has no accelerator context and runs no
inference; an accelerator engine must spawn (CUDA does not survive a fork) and does not use this file.
"""

import multiprocessing
import runpy

_set_start_method = multiprocessing.set_start_method


def _fork(method, force=False):
    _set_start_method("fork", force=force)


multiprocessing.set_start_method = _fork

if __name__ == "__main__":
    runpy.run_module("sglang.launch_server", run_name="__main__", alter_sys=True)
