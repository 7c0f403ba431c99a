# More cache than four Sparks have memory.
{
  fleet.topology = "switched";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
    { name = "spark-3"; address = "10.77.0.4"; }
  ];
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
  engine.kvTokens = 20000000;
  engine.staticPercent = 97;
}
