# The firewall: a table of its own, which accepts what it does not name, so that nobody is locked out and no rule of others
# is touched.
{ lib, config, ... }:
let
  inherit (config) fabric fleet group host metrics node serving;
  inherit (import ../../../nix/rails.nix { inherit lib config; }) links;
  render = import ../../types/unit.nix lib;
  own = links node.rank;
  set = values: "{ ${lib.concatStringsSep ", " values} }";
  quoted = interface: "\"${interface}\"";
  net = link: "${lib.concatStringsSep "." (lib.genList (i: builtins.elemAt (octets link) i) 3)}.0/24";
  octets = link: builtins.match "([0-9]+)\\.([0-9]+)\\.([0-9]+)\\.[0-9]+" link.address;
  file = "/etc/sparkserve/nftables.conf";
  rules = ''
    # Adding it first makes deleting it right in any case.
    add table inet sparkserve
    delete table inet sparkserve
    table inet sparkserve {
      chain input {
        type filter hook input priority filter; policy accept;
        # A cable carries its own network and nothing else. RDMA passes by the kernel and is not seen here.
    ${lib.concatMapStringsSep "\n" (link: "    iifname ${quoted link.interface} ip saddr != ${net link} drop") own}
        iifname ${set (map (link: quoted link.interface) own)} meta nfproto ipv6 drop
        # Endpoint, controller and counters.
        tcp dport ${closed} iifname != ${set (map quoted [ "lo" fabric.managementInterface ])} drop
      }
    }
  '';
  closed = set (map toString [ serving.port group.controlPort metrics.port ]);
in
{
  config.host = lib.mkIf (host.platform == "dgx-os" && fleet.topology != "single") {
    files.${file}.text = rules;
    units."sparkserve-firewall.service" = render {
      Unit = {
        Description = "sparkserve: firewall";
        # nftables.service empties the whole ruleset when it starts: this one starts after it, each time.
        After = "nftables.service";
        PartOf = "nftables.service";
        Wants = "network-pre.target";
        Before = "network-pre.target shutdown.target";
        Conflicts = "shutdown.target";
        DefaultDependencies = "no";
        # systemd does not read this: a unit that changes is restarted, and so are the rules that it loads.
        X-Rules = builtins.hashString "sha256" rules;
      };
      Service = {
        Type = "oneshot";
        RemainAfterExit = "yes";
        ExecStart = "/usr/sbin/nft -f ${file}";
        ExecReload = "/usr/sbin/nft -f ${file}";
        ExecStop = "/usr/sbin/nft delete table inet sparkserve";
      };
      Install.WantedBy = "multi-user.target";
    };
  };
}
