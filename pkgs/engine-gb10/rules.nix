# What has to hold for the root, and the exceptions, each with its reason. See sparkserve.roots.judge.
{ sites, driver }:
let
  torch = "/opt/torch/lib/torch/lib";
  cuda = "/opt/cuda/lib/nvidia/cu13/lib";

  # Those that `user` (a pattern of paths) needs of one folder `by`.
  from = by: because: user: libraries: map (library: { inherit library user by because; }) libraries;
  ofTorch = from torch "torch is imported first: its tensors are what these functions take";
  ofCuda = from cuda "torch is imported first, and has CUDA's libraries loaded";
  ofDriver = user: from "driver" "it has to be of the kernel module's version, so the host brings it" user [ "libcuda.so.1" ];
in
{
  machine = "aarch64";
  glibc = "2.36";
  inherit sites;
  libraryPath = [ driver ];
  data = { };

  loaded = builtins.concatLists [
    (ofTorch "/opt/engine/lib/deep_gemm/*" [ "libc10*.so" "libtorch*.so" ])
    (ofTorch "/opt/engine/lib/flash_mla/*" [ "libc10*.so" "libtorch*.so" ])
    (ofTorch "/opt/engine/lib/sgl_kernel/*" [ "libc10*.so" "libtorch*.so" ])
    (ofTorch "/opt/engine/lib/sglang/srt/mem_cache/*" [ "libc10*.so" "libtorch*.so" ])
    (ofTorch "/opt/torch/lib/torchvision/*" [ "libc10*.so" "libtorch*.so" ])
    (ofCuda "/opt/engine/lib/deep_gemm/*" [ "libcublas*.so.13" "libcudart.so.13" "libnvrtc.so.13" ])
    (ofCuda "/opt/engine/lib/flash_mla/*" [ "libcudart.so.13" ])
    (ofCuda "/opt/engine/lib/sgl_kernel/*" [ "libcublas*.so.13" "libcudart.so.13" "libnvrtc.so.13" ])
    (ofCuda "/opt/engine/lib/torch_memory_saver_*" [ "libcudart.so.13" ])
    (ofCuda "/opt/torch/lib/torchvision/*" [ "libcudart.so.13" ])
    (ofDriver "/opt/engine/lib/flash_mla/*")
    (ofDriver "/opt/engine/lib/nvidia_cutlass_dsl/*")
    (ofDriver "/opt/engine/lib/sgl_kernel/*")
    (ofDriver "/opt/engine/lib/torch_memory_saver_*")
    (ofDriver "/opt/torch/lib/torch/lib/libcaffe2_nvrtc.so")
    (from cuda "libcufile.so.0 loads it" "${cuda}/libcufile_rdma.so.1" [ "libcufile.so.0" ])
    (from "/opt/engine/lib/deepseek_recipe.libs" "the module that needs these needs that one too, and finds it"
      "/opt/engine/lib/deepseek_recipe.libs/*" [ "libopencv_*" ])
    (from "/opt/engine/lib/tvm_ffi/lib" "xgrammar imports tvm_ffi first" "/opt/engine/lib/xgrammar/*" [ "libtvm_ffi.so" ])
  ];

  libraries = [
    {
      name = "libnccl.so.2";
      place = "/opt/cuda/lib/nvidia/nccl/lib/libnccl.so.2";
      user = "/opt/torch/lib/torch/lib/libtorch_cuda.so";
    }
  ];
  owners = [ { module = "b12x"; site = "/opt/engine/lib"; distribution = "b12x-1.5.1"; } ];
}
