# The cables of a topology: which port of which node goes where, and the addresses on them. One network for each
# stripe of each cable, so that a route names its cable: no two ports of a node are on one network.
{ lib, topology }:
let
  # Port 0 of `from` to port 1 of `to`, by rank.
  cables = {
    single = [ ];
    triangle = [ { from = 0; to = 1; } { from = 1; to = 2; } { from = 2; to = 0; } ];
  }.${topology};

  # A port of a Spark's ConnectX-7 hangs on two PCIe links and shows as two interfaces: the stripes.
  interfaces = [ [ "enp1s0f0np0" "enP2p1s0f0np0" ] [ "enp1s0f1np1" "enP2p1s0f1np1" ] ];

  # 10.<lower><higher>.<stripe>.<own>, nodes counted from 1.
  net = { from, to }:
    let number = rank: toString (rank + 1);
    in if from < to then "10.${number from}${number to}" else "10.${number to}${number from}";
  address = cable: stripe: rank: "${net cable}.${toString stripe}.${toString (rank + 1)}";

  end = { rank, peer, port, cable, index }:
    lib.imap0
      (stripe: interface: {
        inherit interface peer stripe;
        address = address cable stripe rank;
        prefix = 24;
        peer_address = address cable stripe peer;
        cable = index;
      })
      (builtins.elemAt interfaces port);
in
{
  # The links of the node with this rank, in cable order.
  links = rank: builtins.concatLists (lib.imap0
    (index: cable:
      lib.optionals (cable.from == rank) (end { inherit rank cable index; peer = cable.to; port = 0; })
      ++ lib.optionals (cable.to == rank) (end { inherit rank cable index; peer = cable.from; port = 1; }))
    cables);

  # What every address on a cable begins with.
  nets = map (cable: "${net cable}.") cables;
}
