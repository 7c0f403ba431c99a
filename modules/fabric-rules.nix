# What a cabling must be, looked at before any node is asked. nix/rails.nix makes the networks of it.
{ lib, config, ... }:
let
  inherit (builtins) concatLists elemAt length match;
  inherit (config) fabric fleet serving;
  inherit (import ../nix/rails.nix { inherit lib config; }) cables nets rails;
  listed = lib.concatStringsSep ", ";
  name = rank: (elemAt fleet.nodes rank).name;
  ranks = lib.genList (rank: rank) (length fleet.nodes);
  direct = fleet.topology != "single" && fleet.topology != "switched";

  ends = lib.concatMap (cable: cable.ends) cables;
  known = lib.filter (cable: lib.all (end: end.rank != null) cable.ends) cables;
  peers = cable: map (end: end.rank) cable.ends;
  twice = values: lib.unique (lib.filter (value: length (lib.filter (v: v == value) values) > 1) values);
  ports = twice (map (end: end.text) ends);
  ofPort = port: lib.concatMapStringsSep " and " (cable: "${cable.from} to ${cable.to}")
    (lib.filter (cable: cable.from == port || cable.to == port) cables);

  # Rank order is cable order: a ring has no way between opposite ranks, and NCCL must never be asked for one.
  after = rank: if rank + 1 == length fleet.nodes then 0 else rank + 1;
  neighbours = a: b: b == after a || a == after b;
  joined = a: b: lib.any (cable: peers cable == [ a b ] || peers cable == [ b a ]) known;
  apart = lib.filter (pair: !joined pair.a pair.b)
    (lib.concatMap (a: map (b: { inherit a b; }) (lib.filter (b: a < b && neighbours a b) ranks)) ranks);
  itself = cable: elemAt (peers cable) 0 == elemAt (peers cable) 1;
  across = lib.filter (cable: !neighbours (elemAt (peers cable) 0) (elemAt (peers cable) 1)) known;

  power = n: if n == 0 then 1 else 2 * power (n - 1);
  number = address:
    let byte = i: builtins.fromJSON (elemAt (match "([0-9]+)\\.([0-9]+)\\.([0-9]+)\\.([0-9]+)" address) i);
    in ((byte 0 * 256 + byte 1) * 256 + byte 2) * 256 + byte 3;
  # The first `bits` bits of an address as a number.
  bitsOf = bits: address: number address / power (32 - bits);
  bits = if fabric.managementPrefix < 24 then fabric.managementPrefix else 24;
  near = address: lib.filter (net: bitsOf bits "${net}.0" == bitsOf bits address) nets;
  holding = address: lib.filter (net: lib.hasPrefix "${net}." address) nets;

  # The management network: the first node's. Its first address is its name, and its last is for all hosts.
  size = power (32 - fabric.managementPrefix);
  network = bitsOf fabric.managementPrefix;
  place = address: number address - network address * size;
  first = lib.head fleet.nodes;
  nobody = lib.filter (node: lib.elem (place node.address) [ 0 (size - 1) ]) fleet.nodes;
  elsewhere = lib.filter (node: network node.address != network first.address) fleet.nodes;

  onNet = net: lib.concatMapStringsSep " and " (rail: rail.name) (lib.filter (rail: lib.elem net rail.nets) rails);

  functions = node: concatLists node.ports;
  names = node: [ fabric.managementInterface ] ++ map (f: f.interface) (functions node);
  rule = assertion: message: { inherit assertion message; };
  refuse = rule false;
in
{
  config.assertions = lib.optionals (fleet.topology != "single") (
    [
      (rule (direct || fabric.cables == null) (
        "fabric.cables has ${toString (length cables)} cables, but fleet.topology = \"${fleet.topology}\" has none from "
        + "node to node: leave it out"
      ))
      (rule (direct || fabric.switchPorts != [ ])
        "fabric.switchPorts = [ ] leaves the nodes without a fabric: name the ports at the switch, such as [ 0 ]")
      (rule (!direct || fabric.switchPorts == [ 0 ]) (
        "fabric.switchPorts = [ ${toString fabric.switchPorts} ], but fleet.topology = \"${fleet.topology}\" has no "
        + "switch: leave it out"
      ))
      (rule (fleet.topology != "ring" || fabric.nccl != "stock") (
        "fabric.nccl = \"stock\" connects opposite ranks, which have no cable in fleet.topology = \"ring\": set "
        + "fabric.nccl = \"ring\", or use a switch"
      ))
      (rule (fabric.prefix != 127)
        "fabric.prefix = 127 is every node's own loopback: leave it out, which is 10")
      (rule (holding serving.host == [ ]) (
        "serving.host = \"${serving.host}\" is on the fabric, which carries tensors and asks nobody who he is: use "
        + "127.0.0.1, or the head's management address"
      ))
    ]
    ++ map (end: refuse
      "fabric.cables: ${end.text} is a port of no node: name one of ${listed (map (n: n.name) fleet.nodes)}")
      (lib.filter (end: end.rank == null) ends)
    ++ map (cable: refuse (
      "fabric.cables: ${cable.from} to ${cable.to} goes from ${name (lib.head (peers cable))} to itself: a cable joins "
      + "two nodes"
    )) (lib.filter itself known)
    ++ map (port: refuse (
      "fabric.cables: port ${port} has more than one cable (${ofPort port}): list each cable once, from either end, and "
      + "one for a port"
    )) ports
    ++ map (cable: refuse (
      "fabric.cables: ${cable.from} to ${cable.to} joins nodes that are not neighbours in fleet.nodes: list fleet.nodes "
      + "as they are cabled"
    )) (lib.filter (cable: !itself cable) across)
    ++ map (pair: refuse (
      "fabric.cables: no cable between ${name pair.a} and ${name pair.b}, but fleet.topology = \"${fleet.topology}\" "
      + "needs it: add it, or choose another topology"
    )) (lib.optionals direct apart)
    ++ map (rail: refuse (
      "fabric.cables: ${rail.name} has ${toString (length rail.nets)} subnets, but a port has 2 stripes: give one for "
      + "each, or leave subnets out"
    )) (lib.filter (rail: length rail.nets != 2) rails)
    ++ map (net: refuse (
      "fabric.cables: subnet ${net}.0/24 is on ${onNet net}: give each stripe of each cable its own, or leave subnets out"
    )) (twice nets)
    ++ map (node: refuse (
      "fleet.nodes: address ${node.address} of ${node.name} is in one network with ${lib.head (near node.address)}.0/24, "
      + "which the cables use: give it one of another network, or change fabric.prefix or fabric.managementPrefix"
    )) (lib.filter (node: near node.address != [ ]) fleet.nodes)
    ++ map (node: refuse (
      "fleet.nodes: ports of ${node.name} are ${toString (map length node.ports)} functions, not two for each of two "
      + "ports: name all four, or leave ports out"
    )) (lib.filter (node: map length node.ports != [ 2 2 ]) fleet.nodes)
    ++ lib.concatMap (node: map (twin: refuse (
      "fleet.nodes: ports of ${node.name}: ${twin} is named twice (fabric.managementInterface counts): give each function "
      + "its own interface, RDMA device and PCI address"
    )) (twice (names node) ++ twice (map (f: f.hca) (functions node))
      ++ twice (map (f: f.pci) (functions node)))) fleet.nodes
    ++ map (node: refuse (
      "fleet.nodes: address ${node.address} of ${node.name} is the "
      + "${if place node.address == 0 then "name" else "broadcast address"} of its network "
      + "with fabric.managementPrefix = ${toString fabric.managementPrefix}: give it another one"
    )) nobody
    ++ map (node: refuse (
      "fleet.nodes: address ${node.address} of ${node.name} is not in one network with ${first.address} of ${first.name} "
      + "with fabric.managementPrefix = ${toString fabric.managementPrefix}: give it one of that network, or lower "
      + "fabric.managementPrefix"
    )) elsewhere
  );
}
