# A node without the service that people reach it by.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  kernel.idleUnits = [ "ssh.service" ];
}
