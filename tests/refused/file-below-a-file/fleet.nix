# A path that is to be a file and a folder.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.files."/etc/own".text = "";
  host.files."/etc/own/more".text = "";
}
