# A fleet: its machines, and what they serve. `./sparkserve fleet show` prints what comes out.
{
  # In cable order; the first is the head. hosts/local-triangle has three nodes, with fleet.topology = "triangle".
  fleet.nodes = [
    { name = "spark-0"; address = "127.0.0.1"; }
  ];

  serving.model = "smollm2-135m";
  serving.port = 8888;

  # More options, with their reasons: modules/*.nix. For instance:
  # serving.readyTimeoutS = 600;
  # engine.env.OMP_NUM_THREADS = "4";
  # engine.maxRunning = 8;
}
