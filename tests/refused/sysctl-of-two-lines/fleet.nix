# A value that brings a second sysctl.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.sysctls."vm.swappiness" = "1\nkernel.core_pattern=|/bin/x";
}
