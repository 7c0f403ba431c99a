# Which gates decide whether a closure serves well.
{ lib, ... }:
{
  options.gates = lib.mkOption {
    type = lib.types.listOf (lib.types.enum [ "smoke" ]);
    default = [ "smoke" ];
    description = "Gates in the order they run. smoke: a known question gets the known answer.";
  };
}
