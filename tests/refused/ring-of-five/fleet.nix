# Five nodes in a ring: two ports a node make a ring of any length, but no collective here is made for more than four.
{
  fleet.topology = "ring";
  fleet.nodes = import ../../policy/nodes.nix 5;
  serving.model = "smollm2-135m";
}
