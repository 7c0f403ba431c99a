# A name that systemd takes for no unit: it would mask nothing.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.mask = [ "cups" ];
}
