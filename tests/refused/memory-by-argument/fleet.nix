# An argument that the memory model would not see.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../policy/nodes.nix 4;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.args = [ "--max-total-tokens=9000000" ];
}
