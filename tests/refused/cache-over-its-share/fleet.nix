# A cache that SGLang would cut without a word.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../policy/nodes.nix 4;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.staticPercent = 80;
}
