# How much memory the engine may take.
{ lib, config, ... }:
let
  limit = config.memory.limitMiB;
  needed = (import (./profiles + "/${config.serving.model}.nix")).neededMiB;
in
{
  options.memory.limitMiB = lib.mkOption {
    type = lib.types.nullOr lib.types.ints.positive;
    default = null;
    description = "Memory of all engine processes together, in MiB; above it the engine is killed. null: no limit.";
  };

  config.assertions = [
    {
      assertion = limit == null || limit >= needed;
      message =
        "memory.limitMiB = ${toString limit} is less than the ${toString needed} that ${config.serving.model} "
        + "needs: raise it, or leave it out";
    }
  ];
}
