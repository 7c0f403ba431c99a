# Proves: inside the build sandbox, with no network, SGLang starts by the one run path and passes the quick gates that the
# plan of local-single declares; $out holds their evidence. What a build that is cached cannot show: docs/gates.md.
# Costs: 2 minutes of processor time once the engine root is built, the start included; 7 minutes with a quarter of a core.
# Of the harness it depends on the parts in gates.json alone: an edit elsewhere starts no engine here.
# tests/unit/test_gates_cut.py: they are all that is imported.
{ runPython, closure, venv, modules, source, pins, fleets, lib }:
let
  top = toString ../src/sparkserve;
  # A part, what is in one, or a folder on the way to one.
  belongs = path: part:
    path == "${top}/${part}" || lib.hasPrefix "${top}/${part}/" path || lib.hasPrefix "${path}/" "${top}/${part}";
  parts = builtins.fromJSON (builtins.readFile ./gates.json);
  harness = venv {
    name = "gates";
    pins = [ ];
    above = [ (venv { name = "harness"; pins = pins.harness.wheels; }) ];
    packages.sparkserve = modules {
      name = "gates-package";
      sources = builtins.path {
        path = ../src/sparkserve;
        name = "package";
        filter = path: _: baseNameOf path != "__pycache__" && lib.any (belongs path) parts;
      };
      package = "sparkserve";
    };
  };
in
runPython {
  name = "check-gates";
  script = source ./gates.py;
  interpreter = "${harness}/bin";
  TTY_INTERACTIVE = "0"; # a builder writes to a terminal, and a spinner would turn in its log
  closure = closure { fleet = "local-single"; node = "spark-0"; inherit (fleets.local-single) plans; inherit harness; };
}
