# Values that all nodes of a fleet must have in common. Modules are evaluated once a node, so a fleet's file can give each
# its own (config.node.rank); with these, ranks of one engine would hang at their first meeting, or answer differently.
# `configs`: the evaluated configs in rank order. The messages name both nodes and both values.
{ lib, configs }:
let
  inherit (import ./throw.nix) show;
  whole = section: map (name: [ section name ]) (lib.attrNames first.${section});
  named = section: map (name: [ section name ]);
  options = whole "fleet" ++ whole "group"
    ++ named "serving" [ "model" "host" "port" "readyTimeoutS" ]
    ++ named "fabric" [ "managementPrefix" "mtu" "prefix" "cables" "nccl" "gidIndex" "trafficClass" "switchPorts" ]
    ++ named "engine" [
      "package" "model" "args" "context" "prefillChunk" "chunkedIndexer" "kvTokens" "maxRunning" "staticPercent"
    ]
    ++ named "engram" [ "enable" "offload" ]
    ++ named "weights" [ "source" "path" ]
    ++ [ [ "host" "platform" ] [ "gates" ] ]
    ++ lib.concatMap adapter (lib.attrNames first.adapters)
    ++ map (name: [ "engine" "env" name ])
      (lib.filter shared (lib.unique (lib.concatMap (config: lib.attrNames config.engine.env) configs)));

  # Where a node's hardware is, and what it costs to prepare. All else of the environment changes how ranks work together.
  shared = name: !builtins.elem name [
    "NCCL_IB_HCA" "NCCL_SOCKET_IFNAME" "NCCL_IB_GID_INDEX" "GLOO_SOCKET_IFNAME" "TP_SOCKET_IFNAME"
    "OMP_NUM_THREADS" "OMP_WAIT_POLICY" "SGLANG_CPU_OMP_THREADS_BIND" "MAX_JOBS" "NCCL_DEBUG" "NCCL_DEBUG_SUBSYS"
  ];

  # The core that a rank stays on is its node's.
  adapter = name: [ [ "adapters" name "enable" ] ] ++ map (setting: [ "adapters" name "settings" setting ])
    (lib.filter (setting: setting != "pin") (lib.attrNames first.adapters.${name}.settings));

  value = option: config: lib.foldl' (set: name: if set == null then null else set.${name} or null) config option;
  # A set's names alone would not show what differs.
  words = option: config:
    let
      found = value option config;
      place = node: "${node.name} at ${node.address} with "
        + lib.concatMapStringsSep " " (function: function.interface) (builtins.concatLists node.ports);
    in
    if option == [ "fleet" "nodes" ] then lib.concatMapStringsSep ", " place found
    else if option == [ "fabric" "cables" ] then builtins.toJSON found
    else show found;
  first = lib.head configs;
  differ = option:
    let others = lib.filter (config: value option config != value option first) configs;
    in map (config: {
      assertion = false;
      message =
        "${lib.concatStringsSep "." option} is ${words option first} on ${first.node.name} and "
        + "${words option config} on ${config.node.name}: the nodes are one engine: give all of them one value";
    }) (lib.optionals (others != [ ]) [ (lib.head others) ]);
in
lib.concatMap differ options
