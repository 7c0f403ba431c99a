# A sysctl that is another file of the node.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.sysctls."vm/../../../etc/hostname" = "x";
}
