# The two ports of a Spark's ConnectX-7. Each hangs on two PCIe links and shows as two functions: the stripes. A port
# reaches 200 Gbit/s over both of them and half of that over one.
map
  (port: map
    (stripe: let path = builtins.elemAt [ "p1" "P2p1" ] stripe; in {
      interface = "en${path}s0f${port}np${port}";
      hca = "roce${path}s0f${port}";
      pci = "000${toString (2 * stripe)}:01:00.${port}";
    })
    [ 0 1 ])
  [ "0" "1" ]
