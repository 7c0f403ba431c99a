# A service that is protected and masked.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.mask = [ "tailscaled.service" ];
  recovery.protect = { "ssh.service" = 128; "tailscaled.service" = 128; };
}
