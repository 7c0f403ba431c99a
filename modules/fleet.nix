# The machines and how they are wired.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.fleet;

  node = {
    options = {
      name = mkOption {
        # At most 63 letters: it becomes a host name.
        type = types.strMatching "[a-z]([a-z0-9-]{0,61}[a-z0-9])?" // {
          description = "host name: small letters, digits and -, such as spark-0";
        };
        description = "What the node is called in commands, logs and closures.";
      };
      address = mkOption {
        type = import ./types/ipv4.nix lib;
        description = "Management address: SSH and control traffic. Tensor traffic uses the cables.";
      };
    };
  };

  # Values that two nodes share, each with the nodes that have it.
  shared =
    attribute:
    let
      users = value: map (n: n.name) (lib.filter (n: n.${attribute} == value) cfg.nodes);
      values = lib.unique (map (n: n.${attribute}) cfg.nodes);
    in
    lib.filter (s: lib.length s.users > 1) (map (value: { inherit value; users = users value; }) values);

  listed = lib.concatStringsSep ", ";

  # This host, loopback, and from 224 on multicast and what is reserved.
  unreachable = n: lib.length cfg.nodes > 1 && builtins.match "(0|127|22[4-9]|2[3-5][0-9])\\..*" n.address != null;

  # How many nodes a topology has.
  sizes = { single = 1; triangle = 3; };
  wanted = sizes.${cfg.topology};
in
{
  options.fleet = {
    name = mkOption {
      type = types.nonEmptyStr;
      description = "The name of the folder under hosts/, which sets it.";
    };
    topology = mkOption {
      type = types.enum (lib.attrNames sizes);
      default = "single";
      description = "How the nodes are cabled. single: one node, no cables. triangle: three, each with a cable to both others.";
    };
    nodes = mkOption {
      type = types.listOf (types.submodule node);
      description = "The nodes in cable order. The first has rank 0: it is the head and answers requests.";
    };
  };

  config.assertions = [
    {
      assertion = lib.length cfg.nodes == wanted;
      message =
        "fleet.nodes has ${toString (lib.length cfg.nodes)} entries, but fleet.topology = \"${cfg.topology}\" takes "
        + "${toString wanted}: list exactly ${toString wanted}, or choose another topology (${listed (lib.attrNames sizes)})";
    }
  ]
  ++ map (n: {
    assertion = false;
    message =
      "fleet.nodes: address ${n.address} of ${n.name} is none that other nodes can reach: give it one of its network";
  }) (lib.filter unreachable cfg.nodes)
  ++ map (s: {
    assertion = false;
    message = "fleet.nodes: address ${s.value} is given to ${listed s.users}: give each node its own";
  }) (shared "address")
  ++ map (s: {
    assertion = false;
    message = "fleet.nodes: ${toString (lib.length s.users)} nodes are named ${s.value}: rename all but one";
  }) (shared "name");
}
