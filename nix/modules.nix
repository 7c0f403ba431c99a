# A folder of a Python package with its bytecode; `links` are such folders by name, linked into it. Bytecode names its
# file, for tracebacks: `place` is where the folder is found, from the top of an environment.
{ runPython, source }:
{ name, sources, place, links ? { } }:
runPython {
  inherit name sources place;
  script = source ./modules.py;
  links = builtins.toJSON links;
}
