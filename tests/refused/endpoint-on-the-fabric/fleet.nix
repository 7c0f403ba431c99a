# The endpoint on an address of a cable.
{
  fleet.topology = "triangle";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];
  serving.model = "smollm2-135m";
  serving.host = "10.12.0.1";
}
