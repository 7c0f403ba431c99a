# A 64k kernel for a fleet with pages of 4 KiB.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  kernel.release = "7.0.0-1019-nvidia-64k";
}
