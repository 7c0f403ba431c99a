# A boot argument that update-grub would run, as it reads the file as shell.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.kernelArgs = [ "$(reboot)" ];
}
