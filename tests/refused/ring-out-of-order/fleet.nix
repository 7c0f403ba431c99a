# A ring whose cables follow another order than the nodes: ranks 0 and 2 are opposite.
{
  fleet.topology = "ring";
  fleet.nodes = import ../../policy/nodes.nix 4;
  serving.model = "smollm2-135m";
  fabric.cables = [
    { from = "spark-0.0"; to = "spark-2.1"; }
    { from = "spark-2.0"; to = "spark-1.1"; }
    { from = "spark-1.0"; to = "spark-3.1"; }
    { from = "spark-3.0"; to = "spark-0.1"; }
  ];
}
