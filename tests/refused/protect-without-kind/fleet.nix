# A service that would silently not be protected.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  recovery.protect = { "ssh.service" = 128; "tailscaled" = 128; };
}
