# More cache than four Sparks have memory.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../policy/nodes.nix 4;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.kvTokens = 20000000;
  engine.staticPercent = 97;
}
