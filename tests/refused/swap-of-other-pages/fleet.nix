# A swap file of 4 KiB pages under a kernel of 64.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  kernel.pageSizeKiB = 64;
  memory.swap = "keep";
}
