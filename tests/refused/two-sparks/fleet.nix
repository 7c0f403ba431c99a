# A model of which a half is more than a Spark.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
}
