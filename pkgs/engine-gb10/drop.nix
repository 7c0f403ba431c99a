# What is left out of the wheels, by layer, as globs (nix/wheels.nix).
{
  cuda = [
    # C++ and Cython sources of the bindings, which are there compiled.
    "cuda/*.cpp" "cuda/*.pyx"
    # For several GPUs in one node; nothing needs it, and it would not find its own libraries.
    "nvidia/cu13/lib/libcusolverMg.so*"
    # For kernels that call NVSHMEM themselves; none here does.
    "nvidia/nvshmem/lib/*.a" "nvidia/nvshmem/lib/*.bc"
    # For MPI, PMI, libfabric and UCX, which are not in this root.
    "nvidia/nvshmem/lib/nvshmem_bootstrap_mpi.so*" "nvidia/nvshmem/lib/nvshmem_bootstrap_pmi*"
    "nvidia/nvshmem/lib/nvshmem_bootstrap_shmem.so*" "nvidia/nvshmem/lib/nvshmem_transport_libfabric.so*"
    "nvidia/nvshmem/lib/nvshmem_transport_ucx.so*"
  ];
  torch = [
    "torch/test/*" "torch/share/*" "torch/bin/test_*" "torch/bin/protoc*" "torch/*.pyi" "torch/lib/*.a"
    # Reads and writes pictures. It is linked to a loader and a CUDA runtime of its own, and torchvision does without.
    "torchvision/image_stable.so" "torchvision.libs/*"
    # AMD's compiler, the profilers with CUDA 12 and 13 inside, tests and plugins.
    "triton/backends/amd/lib/*" "triton/backends/amd/include/*" "triton/backends/nvidia/lib/cupti*"
    "triton/_C/libproton*" "triton/instrumentation/*" "triton/plugins/*" "triton/FileCheck"
  ];
  site = [
    # Manual pages and a program of z3.
    "*.data/data/*"
    # Only the `site` module reads these. The first is for old distutils; env.PYTHONPATH has the folder of the second.
    "distutils-precedence.pth" "nvidia_cutlass_dsl_packages.pth"
    # Its code for CUDA 12: two files say so, two have no suffix.
    "torch_memory_saver_hook_mode_*_cu12.abi3.so" "torch_memory_saver_hook_mode_preload.abi3.so"
    "torch_memory_saver_hook_mode_torch.abi3.so"
    # CUTLASS is there for its headers.
    "flashinfer/data/cutlass/examples/*"
    # For AMD.
    "sglang/kernels/ops/attention/dsv4/asm/*"
    # For compute capability 9.0 alone.
    "sgl_kernel/sm90/*"
  ];
}
