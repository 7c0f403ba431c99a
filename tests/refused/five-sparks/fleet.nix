# A model over more nodes than its kernels can be split for.
{ lib, ... }: {
  imports = [ ../../policy/hosts/spark/fleet.nix ];
  fleet.nodes = lib.mkForce (import ../../policy/nodes.nix 5);
}
