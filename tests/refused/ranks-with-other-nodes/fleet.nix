# Ranks of one engine that do not agree where one of them is.
{ lib, config, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fleet.nodes = lib.mkForce (map
    (node: if node.name == "spark-2" && config.node.name == "spark-1" then node // { address = "10.77.0.9"; } else node)
    (import ../../policy/nodes.nix 3));
}
