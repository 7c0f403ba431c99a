# Where the checkpoint is. DeepSeek-V4.1-Flash has 476 GiB: more than anybody copies in a deployment, so it is not in a
# closure, and a node finds it by a path.
{ lib, config, ... }:
let
  inherit (lib) mkIf mkOption types;
  cfg = config.weights;
  inherit (config.node) rank;
  inherit (import ../nix/rails.nix { inherit lib config; }) links;
  shared = config.host.platform != "none" && cfg.source == "nfs";
  # The head's addresses on what joins it with this node.
  head = lib.filter (peer: peer.rank == 0) (lib.concatMap (link: link.peers) (links rank));
  render = import ./types/unit.nix lib;
  # A mount unit is named after its place.
  unit = lib.concatStringsSep "-" (lib.filter builtins.isString (builtins.split "/" (builtins.substring 1 999 cfg.path))) + ".mount";
in
{
  options.weights = {
    source = mkOption {
      type = types.enum [ "local" "nfs" ];
      default = "local";
      example = "nfs";
      description = ''
        local: a copy on each node. It loads from its own NVMe, and no node needs another to start. nfs: the head's copy,
        read-only over the cables; it saves 476 GiB a node, and the head gives 1.3 GiB of memory to serve it.
        Changes: /etc/exports.d/sparkserve.exports, srv-sparkserve-weights.mount,
        /etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-weights.conf, weights.
      '';
    };
    path = mkOption {
      # No dash: systemd writes it as \x2d in the name of the mount unit.
      type = (import ./types/text.nix lib).folder "[A-Za-z0-9_][A-Za-z0-9_.]*" " without -";
      default = "/srv/sparkserve/weights";
      example = "/srv/models";
      description = ''
        The folder with the checkpoint, on every node the same, below /srv, /mnt or /data: with nfs the head's is mounted
        over it, so it is never one of the system.
        Changes: /etc/exports.d/sparkserve.exports, srv-sparkserve-weights.mount, srv-models.mount,
        /etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-weights.conf, weights.
      '';
    };
    connections = mkOption {
      # 16 is what the kernel's client takes.
      type = types.ints.between 1 16;
      default = 8;
      example = 4;
      description = ''
        TCP connections of a mount, where weights.source is nfs. One connection is one core's copy: eight fill a cable.
        Changes: srv-sparkserve-weights.mount.
      '';
    };
  };

  config = mkIf shared {
    host.units = mkIf (rank != 0 && head != [ ]) {
      ${unit} = render {
        Unit = {
          Description = "sparkserve: the weights on the head";
          After = "network-online.target";
          Wants = "network-online.target";
        };
        Mount = {
          What = "${(lib.head head).address}:${cfg.path}";
          Where = cfg.path;
          Type = "nfs";
          # hard: a head that reboots stops a load, a soft mount would give it zeros. timeo is in tenths of a second.
          Options =
            "nfsvers=4.2,ro,nconnect=${toString cfg.connections},rsize=1048576,wsize=1048576,hard,timeo=600,_netdev";
        };
        Install.WantedBy = "multi-user.target";
      };
    };

    host.files = mkIf (rank != 0) {
      # Without it a rank starts before the mount, and finds an empty folder.
      "/etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-weights.conf".text =
        render { Unit.RequiresMountsFor = cfg.path; };
    };

    assertions = [
      {
        assertion = !(config.engram.enable && lib.hasPrefix "${cfg.path}/" "${config.engram.directory}/");
        message =
          "engram.directory = \"${config.engram.directory}\" is in weights.path = \"${cfg.path}\", which weights.source = "
          + "\"nfs\" mounts read-only: give the pack a folder of the node's own, such as /var/lib/sparkserve/engram";
      }
      {
        # Without clients a line of exports is for everybody.
        assertion = config.fleet.topology != "single";
        message = "weights.source = \"nfs\" for a fleet of one node, which gives its weights to nobody: use \"local\"";
      }
      {
        assertion = rank == 0 || head != [ ];
        message =
          "weights.source = \"nfs\", but ${config.node.name} has no cable to the head: use \"local\", or a topology where "
          + "each node has one";
      }
    ];
  };
}
