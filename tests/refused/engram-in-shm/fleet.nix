# A pack in the memory that it is kept out of.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  engram.enable = true;
  engram.directory = "/dev/shm/engram";
}
