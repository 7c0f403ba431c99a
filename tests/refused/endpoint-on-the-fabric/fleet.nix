# The endpoint on an address of a cable.
{
  fleet.topology = "triangle";
  fleet.nodes = import ../../policy/nodes.nix 3;
  serving.model = "smollm2-135m";
  serving.host = "10.12.0.1";
}
