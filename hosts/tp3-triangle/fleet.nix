# Three DGX Sparks, each with a cable to both others: DeepSeek-V4.1-Flash for four requests of up to 131,072 tokens.
{
  host.platform = "dgx-os";

  # Port 0 of each to port 1 of the next, and of the last to the first. The first is the head.
  fleet.topology = "triangle";
  fleet.nodes = [
    { name = "spark-0"; address = "192.168.100.10"; }
    { name = "spark-1"; address = "192.168.100.11"; }
    { name = "spark-2"; address = "192.168.100.12"; }
  ];

  serving.model = "deepseek-v41-flash";
  # A boot reads 100 GB a node and captures graphs: owners report 12 to 13 minutes.
  serving.readyTimeoutS = 1800;

  # The head has 3.9 GiB left at its worst (./sparkserve memory explain tp3-triangle); the guard kills below 3.4.
  engram.cacheGiB = 0;
}
