# A node that would boot into a file.
{ lib, ... }:
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.defaultTarget = lib.mkForce "../x.target";
}
