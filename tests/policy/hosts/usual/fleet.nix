# Three Sparks as they are when nobody asks for anything.
{
  fleet.topology = "triangle";
  fleet.nodes = import ../../nodes.nix 3;
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
}
