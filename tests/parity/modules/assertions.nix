{ lib, ... }:
{
  options.assertions = lib.mkOption {
    type = lib.types.listOf (lib.types.submodule {
      options.assertion = lib.mkOption { type = lib.types.bool; };
      options.message = lib.mkOption { type = lib.types.str; };
    });
    default = [ ];
  };
}
