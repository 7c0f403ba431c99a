# SGLang with CUDA 13 for a DGX Spark, made on any machine: nothing of it runs while it is built. `layers` is the engine
# root without a model, slow layers first; `argv` and `env` start it inside that root. The package itself is the proof
# that the rules of nix/root-check.nix hold for these layers.
{ rootfs, wheels, layer, adapterLayer, source, pins, tools, rootCheck }:
let
  list = ../../nix/pins/engine-gb10.json;
  own = pins.engine-gb10;
  parts = import ./parts.nix own.wheels;
  drop = import ./drop.nix;

  base = rootfs {
    name = "engine-gb10-base";
    inherit (own) debs;
    mountpoints = map (l: l.target) (builtins.tail layers) ++ [ "/model" driver ];
    script = ./root.sh;
    more.python = "${tools}/usr/bin/python3";
  };
  unpacked = part: more: wheels ({
    name = "engine-gb10-${part}";
    wheels = parts.${part};
    prefix = (builtins.head (builtins.filter (l: l.name == part) layers)).target;
    drop = drop.${part};
  } // more);

  # Where the host's driver is seen: libcuda.so.1 is in no package, as it has to be of the kernel module's version.
  driver = "/opt/driver";
  cudaHome = "/opt/cuda/lib/nvidia/cu13";

  layers = [
    (layer { name = "base"; target = "/"; tree = base; })
    (layer {
      name = "cuda";
      target = "/opt/cuda";
      # What nvcc and those that link for it expect of a CUDA_HOME, and no wheel has.
      tree = unpacked "cuda" {
        links = { "nvidia/cu13/lib64" = "lib"; "nvidia/cu13/lib/libcudart.so" = "libcudart.so.13"; };
      };
    })
    (layer {
      name = "torch";
      target = "/opt/torch";
      # torch looks for CUDA's libraries beside itself.
      tree = unpacked "torch" {
        links.nvidia = "/opt/cuda/lib/nvidia";
        strip = [ "triton/_C/libtriton.so" ]; # debug info
        broken = [ "torch/testing/_internal/py312_intrinsics.py" ]; # Python 3.12 syntax, imported by nothing here
      };
    })
    (layer {
      name = "site";
      target = "/opt/engine";
      tree = unpacked "site" {
        links.nvidia = "/opt/cuda/lib/nvidia"; # tilelang looks there
        # FlashInfer brings an older b12x under that name, and what it was built with.
        dropFrom.flashinfer-python = [ "b12x/*" "build_backend.py" "build_utils.py" ];
        patches = map (name: ../engine-cpu/patches + "/sglang-${name}.patch") [ "refuses-unknown-tokens" "without-ipython" ];
      };
    })
    (layer { name = "overlay"; target = "/opt/overlay"; tree = source ./overlay; })
    adapterLayer
  ];

  argv = [ "/usr/bin/python3.11" "-m" "sglang.launch_server" ];
  env = {
    CUDA_HOME = cudaHome;
    FLASHINFER_NO_DOWNLOAD = "1";
    HF_HUB_OFFLINE = "1";
    HOME = "/root";
    LANG = "C.UTF-8";
    LD_LIBRARY_PATH = driver;
    PATH = "${cudaHome}/bin:/opt/engine/bin:/usr/bin:/bin";
    PYTHONDONTWRITEBYTECODE = "1";
    PYTHONPATH = builtins.concatStringsSep ":" sites;
    PYTHONUNBUFFERED = "1";
    TRITON_LIBCUDA_PATH = driver;
  };
  sites = [
    "/opt/overlay/lib"
    "/opt/adapters"
    "/opt/engine/lib"
    "/opt/engine/lib/nvidia_cutlass_dsl/dsl_packages" # its .pth file says so, which only a site-packages folder reads
    "/opt/torch/lib"
    "/opt/cuda/lib"
  ];
in
rootCheck {
  name = "engine-gb10";
  inherit layers;
  rules = import ./rules.nix { inherit sites driver; };
  texts = {
    "nix/pins/engine-gb10.json" = source list;
    "argv and env of engine-gb10" = builtins.toFile "settings.json" (builtins.toJSON { inherit argv env; });
  };
} // { inherit layers argv env; }
