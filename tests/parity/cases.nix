# The case table of the parity check, evaluated with `lib`: nixpkgs.lib or nix/lib.
# A case in `together` is a value or a throw. One in `alone` may end in an error that Nix cannot catch (such as
# infinite recursion), so each needs a process of its own.
{ lib }:
let
  inherit (builtins) attrNames deepSeq foldl' mapAttrs readDir tryEval;
  outcome = _: value:
    let
      tried = tryEval (deepSeq value value);
    in
    { ok = tried.success; value = if tried.success then tried.value else null; };

  help = rec {
    inherit lib;
    inherit (lib) mkOption types;
    eval = modules: (lib.evalModules { inherit modules; }).config;
    option = type: { options.x = mkOption { inherit type; }; };
    int = default: mkOption { type = types.int; inherit default; };
    required = mkOption { type = types.int; };
    # The value of an option of this type after these definitions, each from a module of its own.
    merged = type: definitions: (eval ([ (option type) ] ++ map (x: { inherit x; }) definitions)).x;
    # The same for definitions like `c: { x = ...; }` which may read config.
    mergedWith = type: modules: (eval ([ (option type) ] ++ modules)).x;
  };
  files = attrNames (readDir ./cases);
in
{
  together = mapAttrs outcome (foldl' (all: file: all // import (./cases + "/${file}") help) { } files);
  alone = import ./alone.nix help;
}
