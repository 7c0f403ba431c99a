# The environment of NCCL for the cabling. Variables and values are those of published fleets of Sparks: three in a triangle,
# four in a ring, four at a switch; GPUDirect RDMA does not exist there, so every transfer goes through host memory.
{ lib, config, ... }:
let
  inherit (config) fabric fleet;
  inherit (import ../nix/rails.nix { inherit lib config; }) links;
  hcas = builtins.sort builtins.lessThan (map (link: link.hca) (links config.node.rank));
  given = value: lib.optionalAttrs (value != null);

  everywhere = {
    # Without it NCCL falls back to sockets, at a tenth of the speed and without a word.
    NCCL_NET = "IB";
    # "=": NCCL takes names for beginnings of names.
    NCCL_IB_HCA = "=" + lib.concatStringsSep "," hcas;
    NCCL_SOCKET_IFNAME = "=" + fabric.managementInterface;
    # One GPU a node: there is nobody to reach in these ways.
    NCCL_P2P_DISABLE = "1";
    NCCL_SHM_DISABLE = "1";
    # With LL128 and its own buffer sizes NCCL pins 4.7 GiB of the one pool; 0.14 GiB with these and eight channels.
    NCCL_PROTO = "^LL128";
    NCCL_LL128_BUFFSIZE = "262144";
    NCCL_BUFFSIZE = "1048576";
    NCCL_MAX_NCHANNELS = "8";
  }
  // given fabric.gidIndex { NCCL_IB_GID_INDEX = toString fabric.gidIndex; }
  // given fabric.trafficClass { NCCL_IB_TC = toString fabric.trafficClass; };

  # Each peer is on other networks: NCCL has to choose the device whose network reaches it.
  cabled = {
    NCCL_NET_PLUGIN = "none";
    NCCL_IB_ADDR_FAMILY = "AF_INET";
    NCCL_IB_ROCE_VERSION_NUM = "2";
    NCCL_IB_MERGE_NICS = "1";
    NCCL_IB_SUBNET_AWARE_ROUTING = "1";
    NCCL_CROSS_NIC = "1";
    NCCL_IGNORE_CPU_AFFINITY = "1";
    NCCL_CUMEM_ENABLE = "0";
    NCCL_NVLS_ENABLE = "0";
  };

  # Nothing may connect opposite ranks: rings only, connected at their first use, which needs cuMem.
  ring = cabled // {
    NCCL_ALGO = "Ring";
    NCCL_RUNTIME_CONNECT = "1";
    NCCL_CUMEM_ENABLE = "1";
    NCCL_CUMEM_HOST_ENABLE = "0";
    NCCL_PAT_ENABLE = "0";
    NCCL_COLLNET_ENABLE = "0";
    NCCL_MNNVL_ENABLE = "0";
    NCCL_GIN_ENABLE = "0";
    NCCL_RMA_DISABLE = "1";
    NCCL_IB_SUBNET_PREFIX_LEN = "24";
    # Of the patched NCCL. Blocks of four channels, two each way: a quarter of the bytes on each interface.
    NCCL_SWITCHLESS_BIDIRECTIONAL = "2";
    NCCL_MIN_TRAFFIC_PER_CHANNEL = "512";
    NCCL_THREAD_THRESHOLDS = "-2 -2 -2 1 1 1";
    NCCL_MIN_NCHANNELS = "4";
    NCCL_MAX_NCHANNELS = "4";
    NCCL_BUFFSIZE = "4194304";
  };

  env = config.engine.env;
  empty = lib.filter (name: lib.hasPrefix "NCCL_" name && env.${name} == "") (lib.attrNames env);
  # They decide what is connected, and know nothing of cables that are not there.
  blind = lib.filter (name: env ? ${name})
    [ "NCCL_ALGO_PLUGIN" "NCCL_TUNER_PLUGIN" "NCCL_GRAPH_FILE" "NCCL_TOPO_FILE" ];
  channels = map (name: env.${name} or "unset") [ "NCCL_MIN_NCHANNELS" "NCCL_MAX_NCHANNELS" ];
  # The memory model multiplies them. A 0 in front would be octal to NCCL.
  digits = { NCCL_BUFFSIZE = "8"; NCCL_LL128_BUFFSIZE = "8"; NCCL_MAX_NCHANNELS = "1"; };
  wrong = lib.filter
    (name: builtins.match "[0-9]+" (env.${name} or "") != null
      && builtins.match "0|[1-9][0-9]{0,${digits.${name}}}" env.${name} == null)
    (lib.attrNames digits);
  refuse = message: { assertion = false; inherit message; };
in
{
  config.engine.env = lib.mkIf (fleet.topology != "single" && fabric.nccl != null) (lib.mapAttrs (_: lib.mkDefault) (
    everywhere // { switched = { }; ring = ring; }.${fleet.topology} or cabled
  ));

  config.assertions =
    map (name: refuse
      "engine.env.${name} = \"\" is not unset to NCCL, which reads an empty number as 0: leave ${name} out")
      empty
    ++ map (name: refuse
      "engine.env.${name} = \"${env.${name}}\" is no number that NCCL and the memory model can take: leave it out")
      wrong
    ++ lib.optionals (fleet.topology == "ring" && fabric.nccl == "ring") (
      map (name: refuse
        "engine.env.${name} lets NCCL connect ranks that no cable of fleet.topology = \"ring\" joins: leave it out")
        blind
      ++ lib.optional (!lib.elem channels (map (n: [ n n ]) [ "1" "2" "4" "8" ])) (refuse (
        "engine.env: NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS are ${lib.concatStringsSep " and " channels}, but the ring "
        + "turns both ways in equal parts only with the same 1, 2, 4 or 8 in both: leave them out, which is 4"
      ))
    );
}
