# The last address of a network, which is for all of its hosts.
{ lib, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fleet.nodes = lib.mkForce [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.255"; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];
}
