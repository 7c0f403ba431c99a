# Pages of 64 KiB with a driver that faults on them.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  kernel.pageSizeKiB = 64;
  kernel.driver = "595.44";
}
