# A fleet whose name brings a section of its units.
{ lib, ... }:
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  fleet.name = lib.mkForce "z\n[Service]";
}
