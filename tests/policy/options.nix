# Every option of the modules by name, with its description and, where it has one, its example as JSON.
{ root }:
let
  lib = import (root + "/nix/lib");
  fleet = import (root + "/tests/policy/hosts/usual/fleet.nix");
  named = { fleet.name = "usual"; node.name = "spark-0"; };
  # nix/fleet.nix declares it; its value is not looked at here.
  assertions.options.assertions = lib.mkOption { type = lib.types.bool; };
  found = (lib.evalModules { modules = [ fleet named assertions (root + "/modules") ]; }).options;
  list = path: node:
    if node._type or null == "option" then
      [ {
        name = lib.concatStringsSep "." path;
        description = node.description or "";
        example = if node ? example then builtins.toJSON node.example else null;
      } ]
    else
      lib.concatMap (name: list (path ++ [ name ]) node.${name}) (lib.attrNames node);
in
list [ ] (removeAttrs found [ "_module" ])
