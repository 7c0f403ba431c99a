# Which gates decide whether a closure serves well. The gates declare themselves: a file of src/sparkserve/gates/kinds is
# one, and the harness runs the same file.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkOption types;
  profile = import (./profiles + "/${config.serving.model}.nix");
  stem = file: builtins.match "([a-z][a-z0-9_]*)\\.py" file;
  files = lib.attrNames (builtins.readDir ../src/sparkserve/gates/kinds);
  dashed = builtins.replaceStrings [ "_" ] [ "-" ];
  names = map dashed (lib.concatMap stem (lib.filter (file: stem file != null) files));
in
{
  options.gates = mkOption {
    type = types.listOf (types.enum names);
    example = [ "smoke" "determinism" ];
    description = ''
      Gates that `sparkserve gate run` runs, in this order; one that cannot run has failed. The default is what the model's
      profile says that the model passes when it is served well: one that a model fails anyway says nothing about its
      engine, as needle does for SmolLM2, which found 28 of 36 sentences. docs/gates.md: what each proves, and its limits.
      Changes: gates.
    '';
  };

  config.gates = mkDefault profile.gates;
}
