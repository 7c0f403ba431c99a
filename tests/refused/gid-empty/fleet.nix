# An empty GID index, which NCCL reads as the link-local entry 0.
{
  fleet.topology = "ring";
  fleet.nodes = import ../../policy/nodes.nix 4;
  serving.model = "smollm2-135m";
  fabric.nccl = "ring";
  engine.env.NCCL_IB_GID_INDEX = "";
}
