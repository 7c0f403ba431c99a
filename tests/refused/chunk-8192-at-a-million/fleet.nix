# A prefill that scores 8192 tokens against a million before them at once.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../policy/nodes.nix 4;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.prefillChunk = 8192;
  engine.context = 1048576;
  engine.chunkedIndexer = false;
}
