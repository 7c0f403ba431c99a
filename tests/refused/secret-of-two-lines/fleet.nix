# A secret whose name brings a command of root's.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  serving.secrets."k\nExecStartPre=/bin/sh" = "/etc/k";
}
