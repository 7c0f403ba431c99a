# mkOverride, mkIf, mkMerge and how they nest.
{ lib, mkOption, types, int, required, eval, merged, mergedWith, ... }:
let
  inherit (lib) mkDefault mkForce mkIf mkMerge mkOptionDefault mkOverride;
  pair = { options.a = int 1; options.b = int 2; };
  nested = { options.s.a = int 1; options.s.b = int 2; };
in
{
  priority-force-over-plain = merged types.int [ 1 (mkForce 2) ];
  priority-force-over-if = merged types.int [ (mkIf true 1) (mkForce 2) ];
  priority-force-in-if-false = merged types.int [ 1 (mkIf false (mkForce 2)) ];
  priority-force-in-if-true = merged types.int [ 1 (mkIf true (mkForce 2)) ];
  priority-if-in-force = merged types.int [ 1 (mkForce (mkIf true 2)) ];
  priority-two-forces = merged types.int [ (mkForce 1) (mkForce 2) ];
  priority-default-under-plain = merged types.int [ (mkDefault 1) 2 ];
  priority-two-defaults = merged types.int [ (mkDefault 1) (mkDefault 2) ];
  priority-override-order = merged types.int [ (mkOverride 30 1) (mkOverride 20 2) (mkForce 3) ];
  priority-option-default-under-default = merged types.int [ (mkOptionDefault 1) (mkDefault 2) ];
  priority-weakest = merged types.int [ (mkOverride 9999 1) ];
  priority-beyond-weakest = merged types.int [ (mkOverride 10000 1) (mkOverride 10000 2) ];
  priority-beyond-weakest-equal = merged types.int [ (mkOverride 10000 1) (mkOverride 10000 1) ];
  priority-beyond-weakest-alone = merged types.int [ (mkOverride 10000 1) ];
  priority-numbers = map (n: (eval [ pair { a = mkOverride n 5; } ]).a) [ 1499 1501 ];
  priority-numbers-default = map (n: merged types.int [ (mkDefault 1) (mkOverride n 5) ]) [ 999 1001 ];
  priority-numbers-plain = map (n: merged types.int [ 1 (mkOverride n 5) ]) [ 99 101 ];
  priority-numbers-force = map (n: merged types.int [ (mkForce 1) (mkOverride n 5) ]) [ 49 51 ];
  priority-default-and-option-default = (eval [ pair { a = mkOptionDefault 1; } ]).a;
  priority-option-default-conflict = (eval [ pair { a = mkOptionDefault 7; } ]).a;
  priority-force-list-drops-others = merged (types.listOf types.int) [
    [ 1 ]
    (mkForce [ 2 ])
    (mkForce [ 3 ])
    [ 4 ]
  ];
  priority-default-list-is-replaced = merged (types.listOf types.int) [ (mkDefault [ 1 ]) [ 2 ] ];
  priority-on-set = eval [ nested { s = mkForce { a = 5; }; } { s.a = 6; s.b = 7; } ];
  priority-default-on-module = eval [ pair (mkDefault { a = 5; b = 6; }) { a = 7; } ];
  priority-if-on-module = eval [ pair (mkIf true { a = 5; }) (mkIf false { b = 6; }) ];
  priority-merge-as-module = eval [ pair (mkMerge [ { a = 5; } ]) ];
  priority-merge-as-config = eval [
    pair
    { config = mkMerge [ { a = 5; } (mkIf true { b = 6; }) (mkIf false { b = 9; }) ]; }
  ];
  priority-merge-in-value = merged (types.listOf types.int) [
    (mkMerge [ [ 1 ] (mkIf true [ 2 ]) (mkIf false [ 3 ]) ])
    [ 4 ]
  ];
  priority-merge-empty = merged (types.listOf types.int) [ (mkMerge [ ]) ];
  priority-merge-mixed = merged types.int [ (mkMerge [ (mkDefault 1) (mkForce 2) 3 ]) ];
  priority-if-on-set = eval [ nested { s = mkIf true { a = 5; }; } { s = mkIf false { b = 6; }; } ];
  priority-if-in-if = merged types.int [ (mkIf true (mkIf true 1)) (mkIf true (mkIf false 2)) ];
  priority-if-without-others = merged types.int [ (mkIf false 1) ];
  priority-if-condition-not-bool = merged types.int [ (mkIf "yes" 1) ];
  priority-if-condition-not-bool-with-default = (eval [ pair { a = mkIf "yes" 5; } ]).a;
  priority-if-reads-config = eval [ pair ({ config, ... }: { config = mkIf (config.a == 1) { b = 5; }; }) ];
  priority-if-on-set-reads-config = (eval [
    nested
    ({ config, ... }: { s = mkIf (config.s.a == 1) { b = 5; }; })
  ]).s;
  priority-if-unknown-option = eval [ pair { c = mkIf false 1; } ];
  priority-if-unknown-option-in-set = eval [ nested { s = mkIf false { c = 1; }; } ];
  priority-force-in-set-member = merged (types.attrsOf types.int) [
    { a = 1; b = 2; }
    { a = mkForce 3; c = 4; }
  ];
  priority-if-in-set-member = merged (types.attrsOf types.int) [ { a = mkIf false 1; b = mkIf true 2; } ];
  priority-if-in-list-entry = merged (types.listOf types.int) [ [ (mkIf false 1) 2 (mkIf true 3) ] ];
  priority-default-in-list-entry = merged (types.listOf types.int) [ [ (mkDefault 1) 2 ] ];
  priority-force-without-type = mergedWith types.int [ { x = mkForce "a"; } { x = 1; } ];
  priority-bad-value-loses = merged types.int [ "not a number" (mkForce 2) ];
}
