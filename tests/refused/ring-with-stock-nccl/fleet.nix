# A ring of four with an NCCL that connects its trees to the opposite rank, where no cable is.
{
  fleet.topology = "ring";
  fleet.nodes = import ../../policy/nodes.nix 4;
  serving.model = "smollm2-135m";
  fabric.nccl = "stock";
}
