# Three nodes with two cables: ranks 0 and 2 do not meet.
{
  fleet.topology = "triangle";
  fleet.nodes = import ../../policy/nodes.nix 3;
  serving.model = "smollm2-135m";
  fabric.cables = [
    { from = "spark-0.0"; to = "spark-1.1"; }
    { from = "spark-1.0"; to = "spark-2.1"; }
  ];
}
