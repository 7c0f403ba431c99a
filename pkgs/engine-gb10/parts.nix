# Wheels by layer: `cuda` changes with CUDA, `torch` with torch, and `site`, the rest, with SGLang.
wheels:
let
  starts = prefix: name: builtins.substring 0 (builtins.stringLength prefix) name == prefix;
  part = { name, ... }:
    if builtins.elem name [ "torch" "torchvision" "triton" ] then "torch"
    else if starts "nvidia-cutlass-dsl" name || name == "nvidia-ml-py" then "site"
    else if starts "nvidia-" name || starts "cuda-" name then "cuda"
    else "site";
in
builtins.groupBy part wheels
