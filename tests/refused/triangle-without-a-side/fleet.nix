# Three nodes with two cables: ranks 0 and 2 do not meet.
{
  fleet.topology = "triangle";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];
  serving.model = "smollm2-135m";
  fabric.cables = [
    { from = "spark-0.0"; to = "spark-1.1"; }
    { from = "spark-1.0"; to = "spark-2.1"; }
  ];
}
