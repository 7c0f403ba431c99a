# The harness: src/ over its wheels. Each folder of it is a store path of its own, and the rest is one more: an edit is
# built again with its folder alone, in a second, and no more than that folder is copied to the nodes.
{ venv, modules, source, pins }:
let
  top = ../../src/sparkserve;
  entries = builtins.removeAttrs (builtins.readDir top) [ "__pycache__" ];
  folders = builtins.filter (name: entries.${name} == "directory") (builtins.attrNames entries);
  folder = name: modules {
    name = "sparkserve-${name}";
    sources = source (top + "/${name}");
    package = "sparkserve/${name}";
  };
in
venv {
  name = "sparkserve";
  pins = [ ];
  above = [ (venv { name = "harness"; pins = pins.harness.wheels; }) ];
  packages.sparkserve = modules {
    name = "sparkserve-package";
    sources = builtins.path {
      path = top;
      name = "package";
      filter = path: type: type == "regular";
    };
    package = "sparkserve";
    links = builtins.listToAttrs (map (name: { inherit name; value = folder name; }) folders);
  };
  program = "sparkserve.cli.main:main";
}
