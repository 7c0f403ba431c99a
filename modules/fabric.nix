# The network of the nodes: management by one cable to a switch, tensors by cables from node to node.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.fabric;
  inherit (import ../nix/cables.nix { inherit lib; inherit (config.fleet) topology; }) nets;
  inside = node: lib.filter (net: lib.hasPrefix net node.address) nets;
in
{
  options.fabric = {
    managementInterface = mkOption {
      # Longer names are refused by the kernel.
      type = types.strMatching "[A-Za-z0-9_.-]{1,15}" // { description = "name of a network interface, such as enP7s7"; };
      default = "enP7s7";
      description = "The interface with a node's management address. enP7s7 is the RJ45 port of a Spark.";
    };
    managementPrefix = mkOption {
      type = types.ints.between 8 30;
      default = 24;
      description = "Bits of the management network, such as 24 for 10.77.0.0 to 10.77.0.255.";
    };
    mtu = mkOption {
      # 1280: the least that IPv6 takes. 9216: the most that a ConnectX-7 takes with room for headers.
      type = types.ints.between 1280 9216;
      default = 9000;
      description = "Bytes in a packet on the cables. 9000 is six times fewer packets than 1500 for the same bytes.";
    };
  };

  config.assertions = map (node: {
    assertion = inside node == [ ];
    message =
      "fleet.nodes: address ${node.address} of ${node.name} is in ${lib.head (inside node)}0.0, which the cables "
      + "use: give it one of another network";
  }) config.fleet.nodes;
}
