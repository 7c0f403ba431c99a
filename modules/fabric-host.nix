# What the cables need of a node's kernel, and the warming of every way before the engine takes it.
{ lib, config, ... }:
let
  inherit (import ../nix/rails.nix { inherit lib config; }) links;
  own = links config.node.rank;
  render = import ./types/unit.nix lib;

  # 28: the headers of IPv4 and ICMP. -M do: in one piece, so that a smaller MTU on the way shows.
  size = toString (config.fabric.mtu - 28);
  ping = link: peer: "/usr/bin/ping -q -c 1 -w 2 -M do -s ${size} -I ${link.interface} ${peer.address} & ";
  pings = lib.concatMap (link: map (ping link) link.peers) own;
in
{
  config.host = lib.mkIf (config.fleet.topology != "single" && config.host.platform != "none") {
    sysctls = lib.listToAttrs (lib.concatMap
      (link: [
        # Both functions of a port hear what comes over its cable. By default the kernel answers for the other one's
        # address too, and a peer then sends both stripes to one function.
        (lib.nameValuePair "net.ipv4.conf.${link.interface}.arp_ignore" "1")
        (lib.nameValuePair "net.ipv4.conf.${link.interface}.arp_announce" "2")
        # A link-local IPv6 address puts entries in front of the IPv4 one in the GID table.
        (lib.nameValuePair "net.ipv6.conf.${link.interface}.disable_ipv6" "1")
      ])
      own);

    units."sparkserve-fabric-warm.service" = render {
      Unit = {
        Description = "sparkserve: one packet to every peer on every function";
        # RoCE does not wait for ARP: its first message to an address that the kernel has not yet resolved is an error.
        After = "network-online.target";
        Wants = "network-online.target";
        Before = "sparkserve-rank.service";
      };
      Service = {
        Type = "oneshot";
        # All at once, for 2 s. A peer that is off is no failure: the preflight of a boot asks again.
        ExecStart = "/bin/sh -c '${lib.concatStringsSep "" pings}wait'";
      };
      Install.WantedBy = "multi-user.target";
    };
  };
}
