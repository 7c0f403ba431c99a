# A tuner that chooses trees on a ring.
{
  fleet.topology = "ring";
  fleet.nodes = import ../../policy/nodes.nix 4;
  serving.model = "smollm2-135m";
  fabric.nccl = "ring";
  engine.env.NCCL_TUNER_PLUGIN = "libtuner.so";
}
