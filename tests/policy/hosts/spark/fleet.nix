# Four Sparks that serve the large model: its memory is planned, and options that cost memory change it.
{
  fleet.topology = "switched";
  fleet.nodes = import ../../nodes.nix 4;
  serving.model = "deepseek-v41-flash";
  host.platform = "dgx-os";
  # Room for the example of every option.
  engine.kvTokens = 2000000;
  engine.context = 262144;
  engine.chunkedIndexer = false;
  engine.prefillChunk = 512;
}
