# A node without its network.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  kernel.idleUnits = [ "systemd-networkd.service" ];
}
