# The first address of a network, which is its name.
{ lib, ... }: {
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fleet.nodes = lib.mkForce [
    { name = "spark-0"; address = "10.77.0.0"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];
}
