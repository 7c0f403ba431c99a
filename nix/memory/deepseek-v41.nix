# Shapes of DeepSeek-V4.1-Flash that decide how much memory a rank needs. From the checkpoint's config.json and tensor
# headers (docs/memory.md names the sources).
{
  hidden = 5120;
  layers = 40;
  vocab = 129280;

  heads = 64;
  headDim = 512;
  queryRank = 1280;
  groups = 8;
  outputRank = 1024;
  # What the sparse attention kernels of SM12x are made for.
  localHeads = [ 8 16 32 64 128 ];

  experts = 384;
  expertWidth = 2304;
  streams = 4;
  # 4 weights before, 4 after, and a 4 x 4 mix.
  mixes = 24;

  # Layers that own a compressed cache, by how many tokens an entry of it stands for.
  owners = { "1" = 1; "2" = 3; };
  indexLayers = 8;
  indexHeads = 32;
  indexDim = 128;
  window = 128;
  page = 256;

  engram = { layers = 2; columns = 24 * 256; };
  vision = { layers = 32; dim = 1024; width = 2816; patch = 588; aligner = 9216; };
  # Three layers that draft five tokens from what layers 37, 38 and 39 hand on.
  draft = { layers = 3; experts = 128; inputs = 3; markov = 256; tokens = 5; };
}
