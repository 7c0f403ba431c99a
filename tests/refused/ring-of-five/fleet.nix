# Five nodes in a ring: two ports a node make a ring of any length, but no collective here is made for more than four.
{
  fleet.topology = "ring";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
    { name = "spark-3"; address = "10.77.0.4"; }
    { name = "spark-4"; address = "10.77.0.5"; }
  ];
  serving.model = "smollm2-135m";
}
