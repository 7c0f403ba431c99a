# Proves: nix/lib gives what nixpkgs.lib gave, on every case whose error Nix can catch. The suite `parity` of
# `./sparkserve check` runs the others too. Costs: evaluation, 30 ms.
{ lib, pass }:
let
  expected = (builtins.fromJSON (builtins.readFile ../tests/parity/expected.json)).cases;
  inherit (import ../tests/parity/cases.nix { inherit lib; }) together;
  other = builtins.filter (name: together.${name} != expected.${name} or null) (builtins.attrNames together);
in
if other == [ ] then
  pass "check-parity"
else
  throw "nix/lib differs from tests/parity/expected.json in: ${builtins.concatStringsSep ", " other}"
