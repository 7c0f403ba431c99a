# Two programs of a node at one port.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  weights.source = "nfs"; serving.port = 2049;
}
