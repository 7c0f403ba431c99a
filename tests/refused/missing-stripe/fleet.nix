# A cable with an address on one of its two stripes: the other one idles.
{
  fleet.topology = "pair";
  fleet.nodes = [
    { name = "spark-0"; address = "10.77.0.1"; }
    { name = "spark-1"; address = "10.77.0.2"; }
  ];
  serving.model = "smollm2-135m";
  fabric.cables = [ { from = "spark-0.0"; to = "spark-1.1"; subnets = [ "10.12.0.0/24" ]; } ];
}
