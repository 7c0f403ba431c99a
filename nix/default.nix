# The sealed world: everything here is made of pins. No flake input, no channel, no path of the builder machine.
# Nix 2.8 is the oldest Nix that must read this (Debian 12).
{ system }:
let
  # A flake's source is one store path, so `./x` would make every build depend on every file of the repository.
  # A path of its own name depends on its own content only: a README edit rebuilds nothing.
  source = path: builtins.path { inherit path; name = baseNameOf path; filter = name: type: baseNameOf name != "__pycache__"; };

  # Calls a function file with the attributes of the scope that it names.
  call = file:
    let f = import file; in f (builtins.intersectAttrs (builtins.functionArgs f) scope);

  # A folder in pkgs/ is a package.
  packages = builtins.mapAttrs (name: type: call (../pkgs + "/${name}/package.nix")) (builtins.readDir ../pkgs);

  # A file checks/NAME.nix is the check NAME; other files there are its builders.
  nameOf = file: builtins.match "(.*)\\.nix" file;
  checkFiles = builtins.filter (file: nameOf file != null) (builtins.attrNames (builtins.readDir ../checks));
  checks = builtins.listToAttrs
    (map (file: { name = builtins.head (nameOf file); value = call (../checks + "/${file}"); }) checkFiles);

  scope = packages // {
    inherit system source call packages checks;
    lib = import ./lib;
    pins = call ./pins.nix;
    stage0 = call ./stage0.nix;
    fetch = call ./fetch.nix;
    rootfs = call ./rootfs.nix;
    tools = call ./tools.nix;
    cc = call ./cc.nix;
    runPython = call ./run-python.nix;
    wheels = call ./wheels.nix;
    rootCheck = call ./root-check.nix;
    modules = call ./modules.nix;
    venv = call ./venv.nix;
    layer = call ./layer.nix;
    adapterLayer = call ./adapter-layer.nix;
    image = call ./image.nix;
    closure = call ./closure.nix;
    host = call ./host.nix;
    inherit (call ./hosts.nix) hosts images;
    deploy = call ./deploy-rs.nix;
    devCheck = call ./dev-check.nix;
    engineCheck = call ./engine-check.nix;
    fleets = import ./fleet.nix { inherit (scope) lib; hosts = ../hosts; modules = ../modules; };
    pass = name: scope.runPython { inherit name; script = builtins.toFile "pass.py" "import os, pathlib; pathlib.Path(os.environ['out']).touch()"; };
  };
in
scope
