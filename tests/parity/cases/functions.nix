# The plain functions.
{ lib, ... }:
{
  function-optional = [
    (lib.optional true 1)
    (lib.optional false 1)
    (lib.optionals true [ 1 2 ])
    (lib.optionals false [ 1 ])
  ];
  function-optionalAttrs = [ (lib.optionalAttrs true { a = 1; }) (lib.optionalAttrs false { a = 1; }) ];
  function-imap = [
    (lib.imap0 (i: v: "${toString i}${v}") [ "a" "b" ])
    (lib.imap1 (i: v: "${toString i}${v}") [ "a" ])
    (lib.imap0 (i: v: i) [ ])
  ];
  function-last = lib.last [ 1 2 3 ];
  function-reverseList = [ (lib.reverseList [ 1 2 3 ]) (lib.reverseList [ ]) ];
  function-unique = lib.unique [ 3 1 3 2 1 ];
  function-genAttrs = lib.genAttrs [ "a" "b" ] (name: name + name);
  function-nameValuePair = lib.nameValuePair "a" 1;
  function-mapAttrs' =
    lib.mapAttrs' (name: value: lib.nameValuePair "x${name}" (value + 1)) { a = 1; b = 2; };
  function-mapAttrsToList = lib.mapAttrsToList (name: value: "${name}=${toString value}") { b = 2; a = 1; };
  function-filterAttrs = lib.filterAttrs (name: value: name != "a" && value > 1) { a = 5; b = 1; c = 2; };
  function-concatMapStringsSep = lib.concatMapStringsSep ", " toString [ 1 2 3 ];
  function-hasPrefix = map (lib.hasPrefix "127.") [ "127.0.0.1" "10.127.0.1" "127" "" ];
  function-builtins = [
    (lib.length [ 1 ])
    (lib.head [ 1 ])
    (lib.elem 1 [ 2 ])
    (lib.any (x: x) [ false ])
    (lib.all (x: x) [ ])
  ];
  function-builtins-lists = [
    (lib.filter (x: x > 1) [ 1 2 ])
    (lib.concatMap (x: [ x x ]) [ 1 2 ])
    (lib.foldl' (a: b: a - b) 9 [ 1 2 ])
  ];
  function-builtins-sets = [
    (lib.attrNames { b = 1; a = 2; })
    (lib.attrValues { b = 1; a = 2; })
    (lib.mapAttrs (n: v: n) { a = 1; })
    (lib.listToAttrs [ { name = "a"; value = 1; } ])
  ];
  function-concatStringsSep = lib.concatStringsSep "-" [ "a" "b" ];
}
