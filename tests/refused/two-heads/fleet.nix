# Two heads: the first of the list is the head, so no option makes a second one.
{
  fleet.topology = "triangle";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; head = true; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];
  serving.model = "smollm2-135m";
}
