# An endpoint without credentials that a whole network can reach.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  serving.host = "10.77.0.1";
}
