# A network in which no host has an address.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  fabric.cables = [
    { from = "spark-0.0"; to = "spark-1.1"; subnets = [ "169.254.3.0/24" "10.9.0.0/24" ]; }
    { from = "spark-1.0"; to = "spark-2.1"; }
    { from = "spark-2.0"; to = "spark-0.1"; }
  ];
}
