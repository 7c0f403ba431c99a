# Three nodes on this machine, cabled as three Sparks are: the laptop fleet.
{
  # In cable order, a triangle: each node has a cable to the next, and the last one to the first. The first is the
  # head. Another program has 10.77.0.0/24 on this machine? Choose any other network here.
  fleet.topology = "triangle";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
    { name = "spark-2"; address = "10.77.0.3"; }
  ];

  # The nodes get the operating system files that a Spark gets.
  host.platform = "dgx-os";
  # The clocks of a laptop are its owner's, and no namespace has its own.
  clocks.governor = null;

  serving.model = "smollm2-135m";
  serving.port = 8888;
}
