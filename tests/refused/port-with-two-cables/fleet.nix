# A cable that is listed from both of its ends.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  fabric.cables = [
    { from = "spark-0.0"; to = "spark-1.0"; }
    { from = "spark-1.0"; to = "spark-0.0"; }
  ];
}
