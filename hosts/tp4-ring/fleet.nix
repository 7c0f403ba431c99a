# Four DGX Sparks in a ring, without a switch: DeepSeek-V4.1-Flash for 16 requests of up to 1,048,576 tokens.
{
  host.platform = "dgx-os";

  # Port 0 of each to port 1 of the next, and of the last to the first: ./sparkserve fabric plan tp4-ring draws it.
  fleet.topology = "ring";
  fleet.nodes = [
    { name = "spark-0"; address = "192.168.100.10"; }
    { name = "spark-1"; address = "192.168.100.11"; }
    { name = "spark-2"; address = "192.168.100.12"; }
    { name = "spark-3"; address = "192.168.100.13"; }
  ];
  # Nodes across from each other have no cable; the stock one connects them all the same, and dies.
  fabric.nccl = "ring";

  serving.model = "deepseek-v41-flash";
  # A boot reads 77 GB a node and captures graphs: owners report 12 to 13 minutes.
  serving.readyTimeoutS = 1800;

  engram.cacheGiB = 4;
}
