# Proves: the tests that need no Nix, no network and no root, in the sandbox, with the interpreter that users run.
# Costs: 30 s.
{ devCheck }:
devCheck {
  name = "unit";
  folders = [ "src" "tests" "nix/lib" "nix/wheels.py" "nix/profiles" "nix/pins" "modules" "hosts" "docs" "manifests" "pkgs" "checks" ];
  commands = [ [ "pytest" "-q" "-p" "no:cacheprovider" ] ];
}
