# Weights where the system is: an NFS mount would cover it.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  weights.source = "nfs";
  weights.path = "/etc";
}
