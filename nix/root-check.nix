# Proves the rules of src/sparkserve/roots over an engine root that this machine may not be able to run; what breaks one
# stops the build. `rules`: sparkserve.roots.judge; `texts` are files of ours by name, in which no reference may be mutable.
# Of the harness it depends on the rules alone.
{ runPython, venv, modules, source }:
let
  top = toString ../src/sparkserve;
  below = folder: path: path == folder || builtins.substring 0 (builtins.stringLength folder + 1) path == "${folder}/";
  harness = venv {
    name = "roots";
    pins = [ ];
    packages.sparkserve = modules {
      name = "roots-package";
      sources = builtins.path {
        path = ../src/sparkserve;
        name = "package";
        filter = path: _: baseNameOf path != "__pycache__" && (path == "${top}/__init__.py" || below "${top}/roots" path);
      };
      package = "sparkserve";
    };
  };
in
{ name, layers, rules, texts }:
runPython {
  inherit name;
  interpreter = "${harness}/bin";
  script = source ./root-check.py;
  layers = builtins.toJSON (map (l: { inherit (l) name target; tree = "${l.tree}"; }) layers);
  rules = builtins.toJSON rules;
  texts = builtins.toJSON texts;
}
