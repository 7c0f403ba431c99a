# The machines and how they are wired.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.fleet;

  function.options = {
    interface = mkOption {
      # No dot: the name becomes a part of sysctl names.
      type = import ./types/interface.nix lib "A-Za-z0-9_";
      description = "The network interface.";
    };
    hca = mkOption {
      type = types.strMatching "[A-Za-z0-9_][A-Za-z0-9_-]*" // { description = "name of an RDMA device, such as rocep1s0f0"; };
      description = "The RDMA device of this interface: the folder in /sys/class/net/<interface>/device/infiniband.";
    };
    pci = mkOption {
      type = types.strMatching "[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]" // {
        description = "PCI address, such as 0000:01:00.0";
      };
      description = "Where /sys/class/net/<interface>/device points to.";
    };
  };

  node.options = {
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
    ports = mkOption {
      type = types.listOf (types.listOf (types.submodule function));
      default = import ../nix/ports.nix;
      description = ''
        The functions of port 0 and of port 1, two each. The default is what a Spark's ConnectX-7 shows on DGX OS; another
        kernel may name them in another way, which `sparkserve fabric check` finds.
      '';
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

  # How many nodes a topology has, from and to.
  sizes = { single = [ 1 1 ]; pair = [ 2 2 ]; triangle = [ 3 3 ]; ring = [ 4 4 ]; switched = [ 2 16 ]; };
  least = lib.head sizes.${cfg.topology};
  most = lib.last sizes.${cfg.topology};
  range = if least == most then toString least else "${toString least} to ${toString most}";
  wanted = lib.optionalString (least == most) "exactly " + range;
  count = lib.length cfg.nodes;
in
{
  options.fleet = {
    name = mkOption {
      # As src/sparkserve/fleet/names.py has it. It stands in units.
      type = types.strMatching "[a-z][a-z0-9-]{0,30}" // { description = "at most 31 small letters, digits and -"; };
      description = "The name of the folder under hosts/, which sets it.";
    };
    topology = mkOption {
      type = types.enum (lib.attrNames sizes);
      default = "single";
      description = ''
        How the nodes are cabled. single: one node, no cables. pair: two. triangle: three, each with a cable to both others.
        ring: four, each with a cable to the one before and the one after it. switched: 2 to 16 at a switch.
      '';
    };
    nodes = mkOption {
      type = types.listOf (types.submodule node);
      description = "The nodes in cable order. The first has rank 0: it is the head and answers requests.";
    };
  };

  config.assertions = [
    {
      assertion = count >= least && count <= most;
      message =
        "fleet.nodes has ${toString count} entries, but fleet.topology = \"${cfg.topology}\" takes ${range}: "
        + "list ${wanted}, or choose another topology (${listed (lib.attrNames sizes)})";
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
