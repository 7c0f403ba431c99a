# A pack whose folder would take /tmp its sticky bit.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  engram.enable = true;
  engram.directory = "/tmp";
}
