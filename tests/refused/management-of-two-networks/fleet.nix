# Nodes that do not reach each other.
{ lib, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fleet.nodes = lib.mkForce [
    { name = "spark-0"; address = "192.168.1.5"; }
    { name = "spark-1"; address = "172.16.1.7"; }
    { name = "spark-2"; address = "192.168.1.6"; }
  ];
}
