# A group whose guard never runs.
{
  fleet.topology = "pair";
  fleet.nodes = import ../../policy/nodes.nix 2;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  host.mask = [ "sparkserve-guard.service" ];
}
