# An allocator that made NaN of long prefills.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../policy/nodes.nix 4;
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.env.PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True";
}
