# Three Sparks as they are when nobody asks for anything.
{
  fleet.topology = "triangle";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
}
