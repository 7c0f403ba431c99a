# Weights over what the node's packages keep.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  weights.source = "nfs";
  weights.path = "/var/lib/dpkg";
}
