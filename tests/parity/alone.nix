# Cases that end in an error which Nix cannot catch: one process each.
{ lib, mkOption, types, eval, merged, ... }:
let
  int = { options.i = mkOption { type = types.int; default = 1; }; options.j = mkOption { type = types.int; default = 2; }; };
in
{
  recursion-value = (eval [ int ({ config, ... }: { i = config.j; j = config.i; }) ]).i;
  recursion-own-value = (eval [ int ({ config, ... }: { i = config.i + 1; }) ]).i;
  recursion-condition = (eval [ int ({ config, ... }: { i = lib.mkIf (config.i == 1) 2; }) ]).i;
  recursion-condition-of-other-value = (eval [ int ({ config, ... }: { i = lib.mkIf (config.j == 2) 2; }) ]).i;
  recursion-imports = eval [ int ({ config, ... }: { imports = if config.i == 1 then [ { j = 3; } ] else [ ]; }) ];
  recursion-imports-by-argument = eval [ int { _module.args.m = { j = 3; }; } ({ m, ... }: { imports = [ m ]; }) ];
  recursion-import-cycle = eval [ { options.l = mkOption { type = types.listOf types.str; }; } ./modules/cycle-one.nix ];
  recursion-structure = eval [ int ({ config, ... }: if config.i == 1 then { j = 3; } else { }) ];
  recursion-submodule = merged (types.submodule ({ config, ... }: { options.a = mkOption { type = types.int; default = config.a; }; })) [ { } ];
  argument-missing = (eval [ int ({ nowhere, ... }: { i = nowhere; }) ]).i;
  argument-missing-unused = (eval [ int ({ nowhere, ... }: { i = 5; }) ]).i;
  argument-default-is-not-used = (eval [ int ({ nowhere ? 7, ... }: { i = nowhere; }) ]).i;
  argument-stray = (eval [ int ({ config }: { i = 5; }) ]).i;
  mkOption-unknown-attribute = (eval [ { options.x = mkOption { type = types.int; defualt = 1; }; } ]).x;
  module-not-there = eval [ int ./modules/none.nix ];
  module-is-a-number = eval [ int ./modules/number.nix ];
  options-not-a-set = eval [ { options.s = 5; } ];
  enum-without-values = merged (types.enum [ ]) [ 1 ];
  type-unknown = merged types.itn [ 1 ];
  merge-of-no-list = merged types.int [ (lib.mkMerge { a = 1; }) ];
}
