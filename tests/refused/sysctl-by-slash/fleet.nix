# A refused sysctl, spelled in another way.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.sysctls."vm/min_free_kbytes" = "1048576";
}
