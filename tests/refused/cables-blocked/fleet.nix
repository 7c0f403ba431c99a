# A Spark without the driver of its cables; modprobe takes - for _.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  kernel.blockedModules = [ "mlx5-ib" ];
}
