# A ring of four with an NCCL that connects its trees to the opposite rank, where no cable is.
{
  fleet.topology = "ring";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
    { name = "spark-3"; address = "10.77.0.4"; }
  ];
  serving.model = "smollm2-135m";
  fabric.nccl = "stock";
}
