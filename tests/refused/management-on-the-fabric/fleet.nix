# A management network that holds the networks of the cables.
{
  fleet.topology = "triangle";
  fleet.nodes = import ../../policy/nodes.nix 3;
  serving.model = "smollm2-135m";
  fabric.managementPrefix = 8;
}
