# Four DGX Sparks at a switch: DeepSeek-V4.1-Flash for 16 requests of up to 1,048,576 tokens.
{
  host.platform = "dgx-os";

  fleet.topology = "switched";
  fleet.nodes = [
    { name = "spark-0"; address = "192.168.100.10"; }
    { name = "spark-1"; address = "192.168.100.11"; }
    { name = "spark-2"; address = "192.168.100.12"; }
    { name = "spark-3"; address = "192.168.100.13"; }
  ];

  serving.model = "deepseek-v41-flash";
  # A boot reads 77 GB a node and captures graphs: owners report 12 to 13 minutes.
  serving.readyTimeoutS = 1800;

  engram.cacheGiB = 4;
}
