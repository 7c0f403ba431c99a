# What is counted for Prometheus, by the engine and by the node: docs/metrics.md.
{ lib, ... }:
let
  inherit (lib) mkOption types;
in
{
  options.metrics = {
    engine = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Whether SGLang counts, and answers at /metrics of the endpoint. Gates and bench compare what it says with what
        they were told.
        Changes: engine.args.
      '';
    };
  };
}
