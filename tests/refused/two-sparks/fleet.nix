# A model of which a half is more than a Spark.
{
  fleet.topology = "pair";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
  ];
  host.platform = "dgx-os";
  serving.model = "deepseek-v41-flash";
  engram.cacheGiB = 4;
}
