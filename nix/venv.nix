# A Python environment that runs from its store path: `bin/python3` is the tools root's interpreter, found to be a
# virtual environment by pyvenv.cfg, so `sys.executable -m pip` in a child process sees the same modules.
# `above` are other environments whose modules are importable too; `packages` are folders made by modules.nix, by name.
{ runPython, source, tools, wheels }:
{ name, pins, above ? [ ], packages ? { }, program ? "" }:
let
  libDir = "lib/python3.11/site-packages";
in
runPython {
  inherit name libDir above program;
  script = source ./venv.py;
  home = "${tools}/usr/bin";
  site =
    if pins == [ ] then "" else
    wheels {
      name = "${name}-wheels";
      wheels = pins;
      inherit libDir;
      prefix = "/";
      loader = "${tools}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
    };
  packages = builtins.toJSON packages;
}
