# A secret in the store, which everybody can read, by another path.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  serving.secrets.k = "/etc/../nix/store/x";
}
