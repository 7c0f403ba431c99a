# Every folder under hosts/ with a fleet.nix, as { <fleet>.plans.<node> = plan; }. A broken fleet breaks only
# itself. `hosts` and `modules` are paths; `lib` is nix/lib, or nixpkgs.lib.
{ lib, hosts, modules }:
let
  inherit (import ./throw.nix) fail place show;

  # NixOS declares this option itself, so it is not among our modules.
  assertions.options.assertions = lib.mkOption {
    type = lib.types.listOf (lib.types.submodule {
      options.assertion = lib.mkOption { type = lib.types.bool; };
      options.message = lib.mkOption { type = lib.types.str; };
    });
    default = [ ];
    description = "What must hold; a message names the option, its value and the way out.";
  };

  fleet =
    name:
    let
      file = hosts + "/${name}/fleet.nix";
      value = import file;
      # A module system reads a string as the path of a module, and Nix then names no file.
      own = if builtins.isAttrs value || builtins.isFunction value then file else fail "FLEET.EVAL" {
        expected = "a set of options, or a function that gives one";
        found = show value;
        where = place (toString file);
        way = "./sparkserve fleet new NAME writes a file to start from.";
      };
      # The fleet's own file comes last, so that its list entries follow those of the modules.
      evaluate = more: node:
        (lib.evalModules { modules = [ own { fleet.name = name; node.name = node; } assertions modules ] ++ more; }).config;
      planned = more:
        let
          # Who the nodes are does not depend on which of them is asked.
          asked = evaluate more "";
          nodes = map (node: node.name) asked.fleet.nodes;
          configs = lib.listToAttrs (map (node: lib.nameValuePair node (evaluate more node)) nodes);
          own = builtins.concatMap (config: config.assertions) (lib.attrValues configs);
          # There is no node to ask the modules about. A fleet without a model hears of that first.
          nobody = builtins.seq asked.serving.model {
            assertion = false;
            message = "fleet.nodes has no entries: list one node or more, each with its name and address";
          };
          # A name that two nodes have leaves one config of them, and is refused as such.
          ranked = map (node: configs.${node}) nodes;
          common = lib.optionals (lib.length nodes > 1) (import ./agree.nix { inherit lib; configs = ranked; });
          failed = lib.filter (a: !a.assertion) (own ++ common ++ lib.optional (nodes == [ ]) nobody);
        in
        if failed == [ ] then
          lib.mapAttrs (_: config: import ./plan.nix { inherit lib config; }) configs
        else
          fail "FLEET.ASSERTION" {
            expected = "a fleet whose options fit together";
            found = lib.concatStringsSep "; " (lib.unique (map (a: a.message) failed));
            where = place (toString file);
            way = "Change the options named.";
          };
      # { option = [ "engine" "maxRunning" ]; value = 8; } as a module that counts more than the fleet's file. An error
      # in it is told with the command line's option, not with a place here.
      forced = { option, value }: {
        _file = "--set ${lib.concatStringsSep "." option}";
        # zipAttrsWith forgets the place.
        config = lib.foldl' (inner: part: builtins.zipAttrsWith (_: lib.head) [ { ${part} = inner; } ]) (lib.mkForce value)
          (lib.reverseList option);
      };
    in
    {
      plans = planned [ ];
      # The plans that other values of options would give.
      but = settings: planned (map forced settings);
    };

  isFleet = name: kind: kind == "directory" && builtins.pathExists (hosts + "/${name}/fleet.nix");
in
lib.mapAttrs (name: _: fleet name) (lib.filterAttrs isFleet (builtins.readDir hosts))
