# An empty GID index, which NCCL reads as the link-local entry 0.
{
  fleet.topology = "ring";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
    { name = "spark-3"; address = "10.77.0.4"; }
  ];
  serving.model = "smollm2-135m";
  fabric.nccl = "ring";
  engine.env.NCCL_IB_GID_INDEX = "";
}
