# A worker that reads the head's weights without a cable to it.
{
  fleet.topology = "ring";
  fabric.nccl = "ring";
  fleet.nodes = map (n: { name = "spark-${n}"; address = "192.168.7.1${n}"; }) [ "0" "1" "2" "3" ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  weights.source = "nfs";
}
