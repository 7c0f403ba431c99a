# This machine alone, serving itself.
{
  fleet.nodes = [
    { name = "spark-0"; address = "127.0.0.1"; }
  ];

  serving.model = "smollm2-135m";
  serving.port = 8888;
}
