# A ring with more channels one way than the other.
{
  fleet.topology = "ring";
  fleet.nodes = import ../../policy/nodes.nix 4;
  serving.model = "smollm2-135m";
  fabric.nccl = "ring";
  engine.env.NCCL_MAX_NCHANNELS = "6";
}
