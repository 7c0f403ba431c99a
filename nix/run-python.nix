# A derivation whose builder is one Python script. Attributes become environment variables.
# `interpreter` is the folder of the python3 to use: the tools root, or an environment made by venv.nix.
{ system, tools }:
{ name, script, interpreter ? "${tools}/usr/bin", ... }@args:
derivation ({
  inherit system;
  builder = "${interpreter}/python3";
  args = [ "-I" "-B" script ];
  # Nix calls a builder by its base name, and Python finds its standard library from that name by PATH.
  PATH = interpreter;
} // builtins.removeAttrs args [ "script" "interpreter" ])
