# What each type takes, and how it merges two definitions.
{ lib, mkOption, types, int, required, eval, merged, mergedWith, ... }:
let
  takes = type: value: merged type [ value ];
  checks = type: values: map type.check values;
  even = types.addCheck types.int (n: n / 2 * 2 == n);
  evens = types.addCheck (types.listOf types.int) (list: list != [ ]);
in
{
  type-bool-equal = merged types.bool [ true true ];
  type-bool-conflict = merged types.bool [ true false ];
  type-bool-takes = checks types.bool [ true false 0 "true" null ];
  type-int-equal = merged types.int [ 4 4 4 ];
  type-int-conflict = merged types.int [ 4 5 ];
  type-int-takes = checks types.int [ 1 (-1) 1.0 "1" null [ ] ];
  type-ints-between = checks (types.ints.between 2 4) [ 1 2 3 4 5 ];
  type-ints-between-string = takes (types.ints.between 2 4) "3";
  type-ints-positive = checks types.ints.positive [ (-1) 0 1 ];
  type-ints-unsigned = checks types.ints.unsigned [ (-1) 0 1 ];
  type-ints-positive-equal = merged types.ints.positive [ 4 4 ];
  type-port = checks types.port [ (-1) 0 80 65535 65536 "80" ];
  type-str-equal = merged types.str [ "a" "a" ];
  type-str-conflict = merged types.str [ "a" "b" ];
  type-str-takes = checks types.str [ "" "a" 1 null ];
  type-str-int = takes types.str 1;
  type-nonEmptyStr = checks types.nonEmptyStr [ "" " " "\n\t" "a" " a " 1 ];
  type-nonEmptyStr-conflict = merged types.nonEmptyStr [ "a" "b" ];
  type-strMatching = checks (types.strMatching "[a-z]+") [ "a" "ab" "aB" "" 1 ];
  type-strMatching-bad = takes (types.strMatching "[a-z]+") "A";
  type-path = checks types.path [ "/a" "a" "" 1 ];
  type-path-literal = types.path.check ./.;
  type-path-conflict = merged types.path [ "/a" "/b" ];
  type-enum = checks (types.enum [ "a" 1 null ]) [ "a" 1 null "b" 2 ];
  type-enum-equal = merged (types.enum [ "a" "b" ]) [ "a" "a" ];
  type-enum-conflict = merged (types.enum [ "a" "b" ]) [ "a" "b" ];
  type-enum-bad = takes (types.enum [ "a" "b" ]) "c";
  type-listOf-concat = merged (types.listOf types.int) [ [ 1 2 ] [ 3 ] [ ] [ 4 ] ];
  type-listOf-not-list = takes (types.listOf types.int) 1;
  type-listOf-bad-entry = takes (types.listOf types.int) [ 1 "2" ];
  type-listOf-empty = takes (types.listOf types.int) [ ];
  type-listOf-nested = merged (types.listOf (types.listOf types.str)) [ [ [ "a" ] ] [ [ "b" "c" ] [ ] ] ];
  type-listOf-undefined = merged (types.listOf types.int) [ ];
  type-attrsOf-union = merged (types.attrsOf types.int) [ { a = 1; } { b = 2; } ];
  type-attrsOf-equal-member = merged (types.attrsOf types.int) [ { a = 1; } { a = 1; } ];
  type-attrsOf-conflict-member = merged (types.attrsOf types.int) [ { a = 1; } { a = 2; } ];
  type-attrsOf-bad-member = takes (types.attrsOf types.int) { a = "1"; };
  type-attrsOf-not-set = takes (types.attrsOf types.int) [ ];
  type-attrsOf-undefined = merged (types.attrsOf types.int) [ ];
  type-attrsOf-lists = merged (types.attrsOf (types.listOf types.int)) [
    { a = [ 1 ]; }
    { a = [ 2 ]; b = [ 3 ]; }
  ];
  type-attrsOf-nested = merged (types.attrsOf (types.attrsOf types.int)) [
    { a.b = 1; }
    { a.c = 2; d.e = 3; }
  ];
  type-nullOr-null = takes (types.nullOr types.int) null;
  type-nullOr-value = takes (types.nullOr types.int) 3;
  type-nullOr-both-null = merged (types.nullOr types.int) [ null null ];
  type-nullOr-equal = merged (types.nullOr types.int) [ 3 3 ];
  type-nullOr-null-and-value = merged (types.nullOr types.int) [ null 3 ];
  type-nullOr-bad = takes (types.nullOr types.int) "3";
  type-nullOr-undefined = merged (types.nullOr types.int) [ ];
  type-nullOr-list = merged (types.nullOr (types.listOf types.int)) [ [ 1 ] [ 2 ] ];
  type-nullOr-null-under-force = merged (types.nullOr types.int) [ 3 (lib.mkForce null) ];
  type-nullOr-default-null = (eval [
    { options.x = mkOption { type = types.nullOr types.int; default = null; }; }
    { x = 4; }
  ]).x;
  type-listOf-nullOr = merged (types.listOf (types.nullOr types.int)) [ [ 1 null ] [ null ] ];
  type-addCheck = checks even [ 1 2 "2" ];
  type-addCheck-merge = merged even [ 2 2 ];
  type-addCheck-bad = takes even 3;
  type-addCheck-list = merged evens [ [ 1 ] [ 2 ] ];
  type-addCheck-list-each-definition = merged evens [ [ 1 ] [ ] ];
  type-addCheck-list-undefined = merged evens [ ];
  type-undefined = merged types.int [ ];
  type-undefined-bool = merged types.bool [ ];
  type-undefined-enum = merged (types.enum [ "a" ]) [ ];
}
