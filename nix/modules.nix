# A folder of a Python package with its bytecode; `links` are such folders by name, linked into it. Bytecode names its
# file, for tracebacks: `package` is the folder as environments have it, such as sparkserve/deploy.
{ runPython, source }:
{ name, sources, package, links ? { } }:
runPython {
  inherit name sources;
  script = source ./modules.py;
  place = "/lib/python3.11/site-packages/${package}";
  links = builtins.toJSON links;
}
