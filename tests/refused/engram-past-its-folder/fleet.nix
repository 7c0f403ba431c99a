# A pack in a folder of root's, by another path.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  engram.enable = true;
  engram.directory = "/srv/../root/.ssh";
}
