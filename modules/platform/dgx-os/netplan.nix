# The addresses of the cables. The management interface is not in this file: who gave it its address keeps it.
{ lib, config, ... }:
let
  inherit (config) fabric fleet host node;
  inherit (import ../../../nix/rails.nix { inherit lib config; }) links;
  link = each: ''
    ${"    "}${each.interface}:
          link-local: []
          dhcp4: false
          dhcp6: false
          accept-ra: false
          addresses: [${each.address}/${toString each.prefix}]
          mtu: ${toString fabric.mtu}
          optional: true
  '';
in
{
  config.host.files = lib.mkIf (host.platform == "dgx-os" && fleet.topology != "single") {
    # Netplan warns of files that others may read. NetworkManager's own changes are in /run and gone after a reboot.
    "/etc/netplan/40-sparkserve-fabric.yaml" = {
      mode = "0600";
      text = ''
        # link-local: an IPv6 address would move the IPv4 entry of the GID table.
        # optional: a cable that is out does not hold up the boot.
        network:
          version: 2
          ethernets:
      '' + lib.concatMapStringsSep "" link (links node.rank);
    };
  };
}
