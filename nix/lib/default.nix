# The part of nixpkgs.lib that modules use, with the same meaning on every case of tests/parity. What else has
# a name in nixpkgs.lib (names.json, written by sparkserve.parity) says "not in the subset" when it is used.
let
  functions = import ./functions.nix;
  errors = import ../throw.nix;
  properties = import ./properties.nix errors;
  modules = import ./modules.nix { inherit functions properties errors types mkOption lib; };
  types = import ./types.nix { inherit functions errors modules; inherit (properties) mkOptionDefault; };

  missing = builtins.fromJSON (builtins.readFile ./names.json);
  refuse = prefix: names: functions.genAttrs names (name: errors.outside "${prefix}.${name}");

  mkOption = given:
    let
      unknown = builtins.attrNames (removeAttrs given [ "type" "default" "example" "description" "apply" ]);
    in
    if unknown != [ ] then
      errors.outside "mkOption with ${builtins.head unknown}"
    else if !given ? type then
      errors.outside "mkOption without a type"
    else
      given // { _type = "option"; };

  lib = refuse "lib" missing.lib // functions // {
    inherit (properties) mkDefault mkForce mkIf mkMerge mkOptionDefault mkOverride;
    inherit (modules) evalModules;
    inherit mkOption;
    types = refuse "lib.types" missing.types // removeAttrs types [ "arguments" ] // {
      ints = refuse "lib.types.ints" missing.ints // types.ints;
    };
  };
in
lib
