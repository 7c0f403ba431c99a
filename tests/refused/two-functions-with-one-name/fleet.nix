# Facts of a node that name one RDMA device twice.
{
  fleet.topology = "pair";
  fleet.nodes = [
    {
      name = "spark-0"; address = "10.77.0.1";
      ports = let
        function = n: { interface = "eth${toString n}"; hca = "mlx5_0"; pci = "0000:01:00.${toString n}"; };
      in [ [ (function 0) (function 1) ] [ (function 2) (function 3) ] ];
    }
    { name = "spark-1"; address = "10.77.0.2"; }
  ];
  serving.model = "smollm2-135m";
}
