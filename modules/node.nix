# The node that a plan is for: the modules are evaluated once for each node, as NixOS does for each host.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  ranked = lib.imap0 (rank: node: node // { inherit rank; }) config.fleet.nodes;
  self = lib.head (lib.filter (n: n.name == config.node.name) ranked);
in
{
  options.node = {
    name = mkOption {
      type = types.str;
      description = "Which of fleet.nodes this host is. nix/fleet.nix sets it; in a NixOS configuration you do.";
    };
    rank = mkOption {
      type = types.ints.unsigned;
      description = "Place in fleet.nodes, from 0, which is the head. It follows from node.name.";
    };
    address = mkOption {
      type = import ./types/ipv4.nix lib;
      description = "Management address. It follows from node.name.";
    };
  };

  config.node = { inherit (self) rank address; };
}
