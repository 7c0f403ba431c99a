"""Stand-in for SGLang's compiled CPU kernels, which exist only as a source build for AVX-512 and AMX.

SGLANG_USE_CPU_ENGINE=1 imports their names at module level, so an absent package ends the import of the
scheduler. Plain decoding without AMX calls none of them; what does call one must fail by name, not return
something wrong. This folder can go when a CPU wheel of sglang-kernel is published.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is not in the CPU engine root")

    return missing
