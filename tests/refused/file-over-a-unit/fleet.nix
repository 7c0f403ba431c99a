# A file where our own unit is put.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.files."/etc/systemd/system/sparkserve-rank.service".text = "";
}
