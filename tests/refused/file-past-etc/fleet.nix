# A file of the host by another path.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.files."/etc/../usr/bin/x".text = "";
}
