# The network of the nodes: management by one cable to a switch, tensors by cables from node to node or by a second switch.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  profile = import (./profiles + "/${config.serving.model}.nix");
  byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  end = types.strMatching "[a-z0-9-]+\\.[01]" // { description = "a node and its port, such as spark-0.1"; };
  cable.options = {
    from = mkOption {
      type = end;
      description = "One end.";
    };
    to = mkOption {
      type = end;
      description = "The other end.";
    };
    subnets = mkOption {
      type = types.nullOr (types.listOf (types.addCheck (types.strMatching "${byte}\\.${byte}\\.${byte}\\.0/24") (net:
        # This host, loopback, link-local, and from 224 on multicast and what is reserved: no host has such an address.
        builtins.match "(0\\.|127\\.|169\\.254\\.|22[4-9]\\.|2[3-5][0-9]\\.).*" net == null) // {
        description = "a network of 256 addresses of hosts, such as 10.12.0.0/24";
      }));
      default = null;
      description = ''
        The network of each stripe, for a site that uses the usual ones otherwise. null counts them: with nodes a and b,
        counted from 1, 10.<ab>.0.0/24 and 10.<ab>.1.0/24.
      '';
    };
  };
in
{
  options.fabric = {
    managementInterface = mkOption {
      type = import ./types/interface.nix lib "A-Za-z0-9_.";
      default = "enP7s7";
      description = ''
        The interface with a node's management address. enP7s7 is the RJ45 port of a Spark.
        Changes: /etc/sparkserve/nftables.conf, engine.env, fabric.management, sparkserve-firewall.service.
      '';
      example = "eth0";
    };
    managementPrefix = mkOption {
      type = types.ints.between 8 30;
      default = 24;
      example = 16;
      description = ''
        Bits of the management network, such as 24 for 10.77.0.0 to 10.77.0.255. All nodes are in one.
        Changes: fabric.management.
      '';
    };
    mtu = mkOption {
      # 1280: the least that IPv6 takes. 9216: the most that a ConnectX-7 takes with room for headers.
      type = types.ints.between 1280 9216;
      default = 9000;
      description = ''
        Bytes in a packet on the cables. 9000 is six times fewer packets than 1500 for the same bytes.
        Changes: /etc/netplan/40-sparkserve-fabric.yaml, fabric.mtu, sparkserve-fabric-warm.service.
      '';
      example = 4096;
    };
    prefix = mkOption {
      type = types.ints.between 1 223;
      default = 10;
      description = ''
        The first number of every address on the cables. 10 is the only one whose addresses are all private; with another
        one, hosts of the Internet with those addresses are out of reach.
        Changes: /etc/exports.d/sparkserve.exports, /etc/netplan/40-sparkserve-fabric.yaml,
        /etc/sparkserve/nftables.conf, fabric.links, sparkserve-fabric-warm.service, sparkserve-firewall.service,
        srv-sparkserve-weights.mount.
      '';
      example = 11;
    };
    cables = mkOption {
      type = types.nullOr (types.listOf (types.submodule cable));
      default = null;
      description = ''
        Which port is cabled to which, each cable once. null is port 0 of each node to port 1 of the next one, and, except
        in a pair, the last to the first. Port 0 is the one whose interface ends in np0.
        Changes: /etc/netplan/40-sparkserve-fabric.yaml, /etc/sparkserve/nftables.conf, fabric.links,
        sparkserve-fabric-warm.service, sparkserve-firewall.service.
      '';
      example = [
        { from = "spark-0.1"; to = "spark-1.0"; }
        { from = "spark-1.1"; to = "spark-2.0"; }
        { from = "spark-2.1"; to = "spark-0.0"; }
      ];
    };
    nccl = mkOption {
      type = types.nullOr (types.enum [ "stock" "ring" ]);
      default = profile.nccl or null;
      description = ''
        Which NCCL the engine loads; null for an engine without, as on a CPU. stock connects its trees to every rank, and
        dies where no cable is. ring has patches that connect neighbours only and use both directions of the ring: owners
        of four Sparks report 232 us instead of 320 for an all-reduce of 2 MiB. Neither is under pkgs/ yet.
        Changes: engine.env, fabric.nccl.
      '';
      example = "ring";
    };
    gidIndex = mkOption {
      type = types.nullOr (types.ints.between 0 255);
      default = null;
      description = ''
        The place in the GID table that NCCL uses on every RDMA device. null lets NCCL find the IPv4 entry of each device:
        the table is filled anew after link, firmware and address events, and its place was seen to move from 3 to 4 on
        one device of two.
        Changes: engine.env.
      '';
      example = 3;
    };
    trafficClass = mkOption {
      type = types.nullOr (types.ints.between 0 255);
      default = null;
      description = ''
        The traffic class of RDMA packets, for a switch that gives one of its priorities to RoCE. Another class than the
        switch's costs most of the speed and is no error. null leaves it to the driver.
        Changes: engine.env.
      '';
      example = 106;
    };
    switchPorts = mkOption {
      type = types.listOf (types.enum [ 0 1 ]);
      default = [ 0 ];
      description = ''
        The ports of every node that go to the switch. Both ports of a Spark hang on the same two PCIe links, so a second
        port is a second way, not more bandwidth. Without a switch it is refused.
      '';
    };
  };
}
