# A cable with both ends in one node.
{
  fleet.topology = "triangle";
  fleet.nodes = import ../../policy/nodes.nix 3;
  serving.model = "smollm2-135m";
  fabric.cables = [
    { from = "spark-0.0"; to = "spark-0.1"; }
    { from = "spark-1.0"; to = "spark-2.1"; }
  ];
}
