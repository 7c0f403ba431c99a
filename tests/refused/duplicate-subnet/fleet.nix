# Two stripes in one network: which of them a packet takes is up to the kernel.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  fabric.cables = [ { from = "spark-0.0"; to = "spark-1.1"; subnets = [ "10.12.0.0/24" "10.12.0.0/24" ]; } ];
}
