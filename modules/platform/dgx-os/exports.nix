# The head's copy of the weights, for the other ends of its cables and nobody else (modules/weights.nix).
{ lib, config, ... }:
let
  inherit (config.weights) path source;
  inherit (import ../../../nix/rails.nix { inherit lib config; }) links;
  peers = lib.concatMap (link: link.peers) (links 0);
  # crossmnt: a disk that is mounted below the folder would be an empty folder to others.
  client = peer: "${peer.address}(ro,sync,no_subtree_check,crossmnt)";
in
{
  config.host.files = lib.mkIf (config.host.platform == "dgx-os" && source == "nfs" && config.node.rank == 0) {
    "/etc/exports.d/sparkserve.exports".text = "${path} ${lib.concatMapStringsSep " " client peers}\n";
  };
}
