# Options inside options.
{ lib, mkOption, types, int, required, eval, merged, mergedWith, ... }:
let
  inherit (lib) mkDefault mkForce mkIf;
  ab = types.submodule { options.a = int 1; options.b = int 2; };
  strict = types.submodule { options.a = required; };
  named = types.submodule ({ name, ... }: {
    options.title = mkOption { type = types.str; default = name; };
  });
  deep = types.submodule {
    options.list = mkOption { type = types.listOf ab; default = [ ]; };
    options.inner = mkOption { type = ab; default = { }; };
  };
  follows = types.submodule ({ config, ... }: { options.a = int 1; options.b = int (config.a + 1); });
in
{
  submodule-defaults = merged ab [ { } ];
  submodule-undefined = merged ab [ ];
  submodule-undefined-required = merged strict [ ];
  submodule-required-missing = merged strict [ { } ];
  submodule-two-definitions = merged ab [ { a = 5; } { b = 6; } ];
  submodule-conflict = merged ab [ { a = 5; } { a = 6; } ];
  submodule-priority-inside = merged ab [ { a = 5; } { a = mkForce 6; } ];
  submodule-priority-outside = merged ab [ { a = 5; b = 7; } (mkForce { a = 6; }) ];
  submodule-default-inside = merged ab [ { a = mkDefault 5; } { a = 6; } ];
  submodule-if-inside = merged ab [ { a = mkIf false 5; b = mkIf true 6; } ];
  submodule-if-outside = merged ab [ (mkIf false { a = 5; }) (mkIf true { b = 6; }) ];
  submodule-unknown = merged ab [ { c = 1; } ];
  submodule-not-a-set = merged ab [ 1 ];
  submodule-function = merged ab [ ({ config, ... }: { a = config.b; }) ];
  submodule-function-config = merged ab [ (_: { config.a = 9; }) ];
  submodule-set-named-config = merged ab [ { config.a = 9; } ];
  submodule-name-in-list = merged (types.listOf named) [ [ { } ] [ { } { title = "t"; } ] ];
  submodule-name-in-set = merged (types.attrsOf named) [ { one = { }; } { two.title = "t"; } ];
  submodule-name-alone = merged named [ { } ];
  submodule-name-undefined = merged named [ ];
  submodule-reads-own-config = merged follows [ { a = 5; } ];
  submodule-nested = merged deep [ { list = [ { a = 3; } ]; inner.b = 4; } { list = [ { } ]; } ];
  submodule-nested-unknown = merged deep [ { inner.c = 4; } ];
  submodule-in-set-merges-members = merged (types.attrsOf ab) [ { m.a = 5; } { m.b = 6; n = { }; } ];
  submodule-in-set-if = merged (types.attrsOf ab) [ { m = mkIf false { a = 5; }; n = mkIf true { }; } ];
  submodule-nullOr = map (value: merged (types.nullOr ab) [ value ]) [ null { a = 5; } ];
  submodule-nullOr-two = merged (types.nullOr ab) [ { a = 5; } { b = 6; } ];
  submodule-of-modules = merged (types.submodule [
    { options.a = int 1; }
    { options.b = int 2; config.a = 7; }
  ]) [ { b = 3; } ];
  submodule-imports = merged (types.submodule { imports = [
    { options.a = int 1; }
  ]; config.a = 8; }) [ { } ];
  submodule-args =
    let
      type = types.submodule ({ extra, ... }: { options.a = int extra; config._module.args.extra = 5; });
    in
    merged type [ { } ];
  submodule-default-of-option = (eval [ { options.x = mkOption { type = ab; default = { a = 9; }; }; } ]).x;
  submodule-default-then-definition = (eval [
    { options.x = mkOption { type = ab; default = { a = 9; }; }; }
    { x.b = 8; }
  ]).x;
  submodule-apply-inside =
    let
      double = types.submodule { options.a = mkOption { type = types.int; apply = n: n * 2; }; };
    in
    merged double [ { a = 4; } ];
  submodule-list-order = mergedWith (types.listOf ab) [ { x = [ { a = 1; } ]; } { x = [ { a = 2; } ]; } ];
}
