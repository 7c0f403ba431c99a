# Cases that end in an error which Nix cannot catch: one process each.
{ lib, mkOption, types, int, required, eval, merged, mergedWith, ... }:
let
  two = { options.i = int 1; options.j = int 2; };
in
{
  recursion-value = (eval [ two ({ config, ... }: { i = config.j; j = config.i; }) ]).i;
  recursion-own-value = (eval [ two ({ config, ... }: { i = config.i + 1; }) ]).i;
  recursion-condition = (eval [ two ({ config, ... }: { i = lib.mkIf (config.i == 1) 2; }) ]).i;
  recursion-condition-of-other-value = (eval [
    two
    ({ config, ... }: { i = lib.mkIf (config.j == 2) 2; })
  ]).i;
  recursion-imports = eval [
    two
    ({ config, ... }: { imports = if config.i == 1 then [ { j = 3; } ] else [ ]; })
  ];
  recursion-imports-by-argument = eval [
    two
    { _module.args.m = { j = 3; }; }
    ({ m, ... }: { imports = [ m ]; })
  ];
  recursion-import-cycle = eval [
    { options.l = mkOption { type = types.listOf types.str; }; }
    ./modules/cycle-one.nix
  ];
  recursion-structure = eval [ two ({ config, ... }: if config.i == 1 then { j = 3; } else { }) ];
  recursion-submodule = merged (types.submodule ({ config, ... }: { options.a = int config.a; })) [ { } ];
  argument-missing = (eval [ two ({ nowhere, ... }: { i = nowhere; }) ]).i;
  argument-missing-unused = (eval [ two ({ nowhere, ... }: { i = 5; }) ]).i;
  argument-default-is-not-used = (eval [ two ({ nowhere ? 7, ... }: { i = nowhere; }) ]).i;
  argument-stray = (eval [ two ({ config }: { i = 5; }) ]).i;
  mkOption-unknown-attribute = (eval [ { options.x = mkOption { type = types.int; defualt = 1; }; } ]).x;
  module-not-there = eval [ two ./modules/none.nix ];
  module-is-a-number = eval [ two ./modules/number.nix ];
  options-not-a-set = eval [ { options.s = 5; } ];
  enum-without-values = merged (types.enum [ ]) [ 1 ];
  type-unknown = merged types.itn [ 1 ];
  merge-of-no-list = merged types.int [ (lib.mkMerge { a = 1; }) ];
}
