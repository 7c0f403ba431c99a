# Modules: forms, imports, order, arguments, unknown options.
{ lib, mkOption, types, int, required, eval, merged, mergedWith, ... }:
let
  list = { options.l = mkOption { type = types.listOf types.str; default = [ ]; }; };
  two = { options.i = int 1; options.j = int 2; };
  says = text: { l = [ text ]; };
  withArgs = specialArgs: modules: (lib.evalModules { inherit modules specialArgs; }).config;
  withOptions = modules: (lib.evalModules { inherit modules; }).options;
  file = name: ../modules + "/${name}.nix";
in
{
  module-list-order = (eval [ list (says "a") (says "b") (says "c") ]).l;
  module-list-order-option-last = (eval [ (says "a") (says "b") list ]).l;
  module-list-order-imports = (eval [
    list
    { imports = [ (says "b") (says "c") ]; l = [ "a" ]; }
    (says "d")
  ]).l;
  module-list-order-deep = (eval [
    list
    { imports = [ { imports = [ (says "deep") ]; l = [ "b" ]; } (says "c") ]; l = [ "a" ]; }
    (says "d")
  ]).l;
  module-list-order-with-default = (eval [
    { options.l = mkOption { type = types.listOf types.str; default = [ "z" ]; }; }
    (says "a")
  ]).l;
  module-same-file-twice = (eval [ list (file "says-a") (file "says-a") ]).l;
  module-same-file-by-two-ways = (eval [
    list
    (file "says-a")
    { imports = [ (file "says-a") ]; }
    (file "imports-a")
  ]).l;
  module-same-file-as-string = (eval [ list (file "says-a") (toString (file "says-a")) ]).l;
  module-same-set-twice = (eval [ list (says "a") (says "a") ]).l;
  module-same-function-twice = let f = _: says "a"; in (eval [ list f f ]).l;
  module-file-function = (eval [ list (file "function") ]).l;
  module-folder = (eval [ list (../modules + "/folder") ]).l;
  module-long-form = eval [ { options = two.options; config.i = 5; } ];
  module-long-form-stray = eval [ two { config.i = 5; j = 6; } ];
  module-short-form = eval [ two { i = 5; } ];
  module-unknown = eval [ two { k = 1; } ];
  module-unknown-nested = eval [ { options.s.a = int 1; } { s.b = 1; } ];
  module-unknown-section = eval [ two { t.b = 1; } ];
  module-unknown-seen-by-options = builtins.attrNames (withOptions [ two { k = 1; } ]);
  module-empty = eval [ ];
  module-no-definitions = eval [ two ];
  module-missing-value-unused = (eval [ two { options.never = required; } ]).i;
  module-costly-options-without-definitions = (eval [ two { options.s.a = throw "costly"; } ]).i;
  module-costly-options-with-definitions = (eval [ two { options.s.a = throw "costly"; } { s.a = 1; } ]).i;
  module-missing-value = (eval [ { options.never = required; } ]).never;
  module-reads-config = (eval [ two ({ config, ... }: { j = config.i + 10; }) { i = 5; } ]).j;
  module-reads-lib = (eval [ two ({ lib, ... }: { i = lib.mkForce 9; }) { i = 5; } ]).i;
  module-special-args = (withArgs { n = 7; } [ two ({ n, ... }: { i = n; }) ]).i;
  module-special-args-in-imports = (withArgs { m = says "a"; } [ list ({ m, ... }: { imports = [ m ]; }) ]).l;
  module-special-args-set = (withArgs { n = 7; } [ two ({ specialArgs, ... }: { i = specialArgs.n; }) ]).i;
  module-args = (eval [ two { _module.args.n = 8; } ({ n, ... }: { i = n; }) ]).i;
  module-args-from-config = (eval [
    two
    ({ config, ... }: { _module.args.n = config.j * 3; })
    ({ n, ... }: { i = n; })
  ]).i;
  module-args-lazy = (eval [ two { _module.args.n = throw "not needed"; } ({ n, ... }: { i = 4; }) ]).i;
  module-args-conflict = (eval [
    two
    { _module.args.n = 8; }
    { _module.args.n = 8; }
    ({ n, ... }: { i = n; })
  ]).i;
  module-args-force = (eval [
    two
    { _module.args.n = 8; }
    { _module.args.n = lib.mkForce 9; }
    ({ n, ... }: { i = n; })
  ]).i;
  module-option-defined = (withOptions [ two { i = 3; } ]).i.isDefined;
  module-option-defined-by-default = (withOptions [ two ]).i.isDefined;
  module-option-not-defined = (withOptions [
    two
    { options.k = required; }
  ]).k.isDefined;
  module-option-definitions = (withOptions [ list (says "a") (says "b") ]).l.definitions;
  module-option-loc = (withOptions [ { options.a.b = required; } ]).a.b.loc;
  module-option-in-module = (eval [
    two
    ({ options, ... }: { j = if options.i.isDefined then 5 else 6; })
  ]).j;
  module-option-files = (withOptions [
    list
    { _file = "one"; l = [ "a" ]; }
    { _file = "two"; l = [ "b" ]; }
  ]).l.files;
  module-set-for-option = eval [ two { i = { a = 1; }; } ];
  module-value-for-section = eval [ { options.s.a = int 1; } { s = 5; } ];
  module-apply = (eval [
    { options.x = mkOption { type = types.int; apply = n: "n=${toString n}"; }; config.x = 5; }
  ]).x;
  module-apply-default = (eval [
    { options.x = mkOption { type = types.int; default = 3; apply = n: n + 1; }; }
  ]).x;
  module-apply-sees-merged = (eval [
    { options.x = mkOption { type = types.listOf types.int; apply = builtins.length; }; }
    { x = [ 1 2 ]; }
    { x = [ 3 ]; }
  ]).x;
  module-default-reads-config = (eval [
    ({ config, ... }: { options.a = int 4; options.b = int (config.a * 2); })
    { a = 6; }
  ]).b;
  module-default-of-wrong-type = (eval [ { options.x = int "a"; } ]).x;
  module-default-unused-wrong-type = (eval [ { options.x = int "a"; config.x = 1; } ]).x;
  module-default-list-replaced = (eval [
    { options.x = mkOption { type = types.listOf types.int; default = [ 1 ]; }; }
    { x = [ 2 ]; }
  ]).x;
  module-default-under-mkDefault = (eval [ { options.x = int 1; } { x = lib.mkDefault 2; } ]).x;
  module-imports-list-in-list = eval [ two { imports = [ [ { i = 3; } ] ]; } ];
  module-type-without-mkOption = eval [ { options.x = types.int; } ];
  module-options-from-two-modules = eval [
    { options.s.a = int 1; }
    { options.s.b = int 2; config.s.a = 4; }
  ];
  module-assertions = (eval [
    (file "assertions")
    two
    ({ config, ... }: {
      assertions = [
        { assertion = config.i == 1; message = "i is ${toString config.i}"; }
        { assertion = false; message = "no"; }
      ];
    })
  ]).assertions;
}
