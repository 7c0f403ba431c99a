# As many compilers as cores, beside a load.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  engine.env.MAX_JOBS = "22";
}
