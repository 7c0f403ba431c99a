# Graphs and windows of more requests than four Sparks have memory for; 16 fit.
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
  engine.maxRunning = 64;
}
