# A cable to a node that is not in the fleet.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  fabric.cables = [ { from = "spark-0.0"; to = "spark-9.1"; } ];
}
