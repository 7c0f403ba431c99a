# A secret that Nix copies to where everybody reads it.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  serving.secrets.token = "${./fleet.nix}";
}
