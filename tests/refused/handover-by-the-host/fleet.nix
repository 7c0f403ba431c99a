# A boot argument that is decided elsewhere, past the option for arguments.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.kernelArgs = [ "kho=on" ];
}
