# A pack of each node's own in a folder that all but the head mount read-only.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  weights.source = "nfs";
  weights.path = "/srv/models";
  engram.enable = true;
  engram.directory = "/srv/models/engram";
}
