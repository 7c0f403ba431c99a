# A file in the store, which is never written.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.files."/nix/store/x".text = "";
}
