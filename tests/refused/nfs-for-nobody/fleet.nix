# Weights that are shared with no other node: with everybody, to NFS.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  weights.source = "nfs";
}
