# The driver of the management network is never loaded.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  fabric.managementInterface = "wlP9s9";
}
