# Three Sparks with every policy of the host on: what the tests of modules/ and modules/platform render.
{
  fleet.topology = "triangle";
  fleet.nodes = import ../../nodes.nix 3;
  serving.model = "smollm2-135m";

  host.platform = "dgx-os";
  fabric.nccl = "stock";
  weights.source = "nfs";
  engram.enable = true;
  clocks.gpuMaxMHz = 2000;
  serving.devices = [ "/dev/nvidia0" "/dev/infiniband/uverbs0" ];
}
