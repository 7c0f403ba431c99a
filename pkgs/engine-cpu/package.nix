# SGLang on a CPU: the wheels, unpacked, cut and patched. `layers` is the engine root without a model, slow layers first;
# `argv` and `env` start it inside that root.
{ wheels, layer, adapterLayer, source, pins, engine-base }:
let
  site = wheels {
    name = "engine-cpu";
    wheels = pins.engine-cpu.wheels;
    prefix = "/opt/engine";
    drop = [
      # C++ tests, headers and archives: 350 MB. bin/torch_shm_manager stays, `import torch` fails without it.
      "torch/test/*" "torch/include/*" "torch/share/*" "torch/bin/test_*" "torch/bin/protoc*" "torch/*.pyi"
      "torch/lib/libtorch_test*" "torch/lib/libjitbackend_test*" "torch/lib/libbackend_with_compiler*" "torch/lib/*.a"
      # Triton is imported by 454 files of SGLang and used by none on a CPU; its compilers for GPUs are 500 MB.
      "triton/backends/nvidia/bin/*" "triton/backends/nvidia/lib/*" "triton/backends/nvidia/include/*"
      "triton/backends/amd/lib/*" "triton/backends/amd/include/*" "triton/instrumentation/*" "triton/plugins/*"
      "triton/_C/libproton*"
    ];
    # Debug info is 314 of its 506 MB.
    strip = [ "triton/_C/libtriton.so" ];
    # Python 3.12 syntax, imported by nothing here.
    broken = [ "torch/testing/_internal/py312_intrinsics.py" ];
    patches = map (name: ./patches + "/${name}") (builtins.attrNames (builtins.readDir ./patches));
  };
in
site // {
  layers = [
    (layer { name = "base"; target = "/"; tree = engine-base; })
    (layer { name = "site"; target = "/opt/engine"; tree = site; })
    (layer { name = "overlay"; target = "/opt/overlay"; tree = source ./overlay; })
    adapterLayer
  ];
  argv = [ "/usr/bin/python3.11" "-m" "sparkserve_launch" ];
  env = {
    HF_HUB_OFFLINE = "1";
    HOME = "/root";
    LANG = "C.UTF-8";
    PATH = "/opt/overlay/bin:/usr/bin:/bin";
    PYTHONDONTWRITEBYTECODE = "1";
    PYTHONPATH = "/opt/overlay/lib:/opt/adapters:/opt/engine/lib";
    PYTHONUNBUFFERED = "1";
  };
}
