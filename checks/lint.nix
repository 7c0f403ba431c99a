# Proves: ruff finds nothing in the harness, the builders and the tests, and every file is formatted. Costs: a second.
{ devCheck }:
devCheck {
  name = "lint";
  folders = [ "src" "tests" "nix" "checks" "pkgs" ];
  commands = [ [ "ruff" "check" "." ] [ "ruff" "format" "--check" "." ] ];
}
