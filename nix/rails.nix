# What joins the ports of a fleet, and the networks on it. A rail is what joins ports: a cable joins two of them, a switch
# one port of every node. Each stripe of a rail is a network of its own, so that an address names its way: no two
# interfaces of a node are in one network.
{ lib, config }:
let
  inherit (config) fabric fleet;
  inherit (builtins) elemAt length match;
  start = toString fabric.prefix;
  ranks = lib.listToAttrs (lib.imap0 (rank: node: lib.nameValuePair node.name rank) fleet.nodes);

  # "spark-0.1" is port 1 of spark-0. The rank of a node that is none of the fleet's is null.
  end = text:
    let parts = match "(.*)\\.([01])" text;
    in { inherit text; rank = ranks.${elemAt parts 0} or null; port = builtins.fromJSON (elemAt parts 1); };

  # Port 0 to port 1 of the next node, and the last to the first where that is another pair.
  chains = { pair = [ [ 0 1 ] ]; triangle = [ [ 0 1 ] [ 1 2 ] [ 2 0 ] ]; ring = [ [ 0 1 ] [ 1 2 ] [ 2 3 ] [ 3 0 ] ]; };
  name = rank: (elemAt fleet.nodes rank).name;
  defaults = map
    (pair: { from = "${name (elemAt pair 0)}.0"; to = "${name (elemAt pair 1)}.1"; subnets = null; })
    (lib.filter (pair: lib.all (rank: rank < length fleet.nodes) pair) (chains.${fleet.topology} or [ ]));

  cables = map (cable: cable // { ends = map end [ cable.from cable.to ]; })
    (if fabric.cables == null then defaults else fabric.cables);
  known = lib.filter (cable: lib.all (e: e.rank != null) cable.ends) cables;

  # 10.<lower><higher>.<stripe>.<own>, nodes counted from 1. A second cable between two nodes goes on counting stripes.
  low = cable: let a = (elemAt cable.ends 0).rank; b = (elemAt cable.ends 1).rank; in if a < b then [ a b ] else [ b a ];
  cableNets = index: cable:
    let
      before = lib.filter (other: low other == low cable) (lib.genList (elemAt known) index);
      pair = lib.concatMapStringsSep "" (rank: toString (rank + 1)) (low cable);
    in
    map (stripe: "${start}.${pair}.${toString (2 * length before + stripe)}") [ 0 1 ];
  stem = subnet: elemAt (match "(.*)\\.0/24" subnet) 0;

  byCable = lib.imap0
    (index: cable: {
      inherit (cable) ends;
      name = "cable ${cable.from} to ${cable.to}";
      nets = if cable.subnets == null then cableNets index cable else map stem cable.subnets;
    })
    known;
  # 10.<100 + port>.<stripe>.<own>: above every pair of nodes, of which a fleet with cables has at most four.
  bySwitch = map
    (port: {
      name = "port ${toString port} to the switch";
      ends = lib.imap0 (rank: node: { inherit rank port; text = "${node.name}.${toString port}"; }) fleet.nodes;
      nets = map (stripe: "${start}.${toString (100 + port)}.${toString stripe}") [ 0 1 ];
    })
    (lib.unique fabric.switchPorts);
  rails = if fleet.topology == "switched" then bySwitch else byCable;

  at = net: end: "${net}.${toString (end.rank + 1)}";
  linksOf = rank: index: rail: end:
    lib.imap0
      (stripe: net: elemAt (elemAt (elemAt fleet.nodes rank).ports end.port) stripe // {
        inherit (end) port;
        inherit stripe;
        rail = index;
        address = at net end;
        prefix = 24;
        peers = map (peer: { inherit (peer) rank; address = at net peer; }) (lib.filter (e: e != end) rail.ends);
      })
      rail.nets;
in
{
  inherit cables rails;

  # The first three numbers of every network, such as 10.12.0.
  nets = lib.concatMap (rail: rail.nets) rails;

  # The links of a rank, in the order of the rails.
  links = rank: builtins.concatLists (lib.imap0
    (index: rail: lib.concatMap (linksOf rank index rail) (lib.filter (end: end.rank == rank) rail.ends))
    rails);
}
