# Graphs and windows of more requests than four Sparks have memory for; 16 fit.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../policy/nodes.nix 4;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.maxRunning = 64;
}
