# Engram's tables: 196e9 parameters that are looked up, not computed with. They stay on NVMe, packed for each rank, with
# a cache of rows in memory.
{ lib, config, ... }:
let
  inherit (lib) mkIf mkOption types;
  cfg = config.engram;
  profile = import (./profiles + "/${config.serving.model}.nix");
  render = import ./types/unit.nix lib;
  text = import ./types/text.nix lib;
in
{
  options.engram = {
    enable = mkOption {
      type = types.bool;
      default = profile.engram or false;
      example = false;
      description = ''
        Whether the model has Engram tables; its profile says so.
        Changes: engram, memory, /etc/tmpfiles.d/zz-sparkserve.conf,
        /etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-engram.conf.
      '';
    };
    offload = mkOption {
      type = types.enum [ "nvme" "ram" ];
      default = "nvme";
      description = "Where the tables are. ram is refused: they are 188.8 GiB, and a Spark has 121.7.";
    };
    directory = mkOption {
      type = text.folder text.part "";
      default = "/var/lib/sparkserve/engram";
      example = "/srv/engram";
      description = ''
        The folder of the node's pack, on an NVMe with room for its part: 63 GiB with three nodes, 48 with four. A row is
        read in 200 us there, a thousand times a second. Below /srv, /mnt or /data, never a folder of the system.
        Changes: engram, /etc/tmpfiles.d/zz-sparkserve.conf,
        /etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-engram.conf.
      '';
    };
    cacheGiB = mkOption {
      type = types.ints.between 0 16;
      default = 1;
      example = 4;
      description = ''
        Memory of a node for rows that were read. With 1, 99.1 % of one fleet's reads were answered; 4 made a prompt of
        900,000 tokens fail, as the node had 1.5 GB left in place of 3.5.
        Changes: engram, memory.
      '';
    };
    ioThreads = mkOption {
      type = types.ints.between 1 256;
      default = 96;
      example = 32;
      description = ''
        Reads at a time. An NVMe gives 3,500 rows a second to one reader and 112,000 to 64.
        Changes: engram.
      '';
    };
  };

  config = {
    host.files = mkIf (config.host.platform != "none" && cfg.enable) ({
      "/etc/tmpfiles.d/zz-sparkserve.conf".text = "d ${cfg.directory} 0755 root root -\n";
    } // lib.optionalAttrs (config.fleet.topology != "single") {
      # Without it a rank starts before the disk is there, and finds no pack.
      "/etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-engram.conf".text =
        render { Unit.RequiresMountsFor = cfg.directory; };
    });
    assertions = [
      {
        assertion = cfg.offload == "nvme";
        message =
          "engram.offload = \"ram\" puts tables of 188.8 GiB into a memory of 121.7, and the node freezes: use \"nvme\", "
          + "with engram.cacheGiB for rows that are read again";
      }
    ];
  };
}
