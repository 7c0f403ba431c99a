# A Spark has one memory for CPU and GPU, and no OOM kill when the GPU's share runs out: the node freezes. Here is what
# keeps the numbers honest that the guard and the engine decide by; what must fit is modules/memory-model.nix.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkIf mkOption types;
  cfg = config.memory;
  onHost = config.host.platform != "none";
  # A node alone has no unit of a rank.
  beforeRank = onHost && cfg.prepareLoad && config.fleet.topology != "single";
  render = import ./types/unit.nix lib;
  shmLimit = 16384;
  jobs = toString cfg.compileJobs;
  givenJobs = config.engine.env.MAX_JOBS or jobs;
  # With pages of 64 KiB the kernel keeps a multiple of what it keeps with 4, and of the engine's memory.
  minFree = if config.kernel.pageSizeKiB == 64 then "45166" else null;
in
{
  options.memory = {
    swap = mkOption {
      type = types.enum [ "off" "keep" ];
      default = "off";
      example = "keep";
      description = ''
        off: /swap.img of DGX OS is not used. A node that swaps answers nobody for minutes, while MemAvailable says there is
        room and the guard waits. Pages that the GPU uses cannot be swapped anyway.
        Changes: host.mask.
      '';
    };
    prepareLoad = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Empty the page cache and compact memory each time that the rank's unit starts. CUDA counts cached files as used
        memory: after a copy of 130 GB a load fell from 4.5 to 0.2 shards a second and died (vllm#35313). Without
        compaction no free block of 4 MiB may be left, with gigabytes free.
        Changes: sparkserve-memory.service, /etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-memory.conf.
      '';
    };
    compileJobs = mkOption {
      # More were never right: 22 compilers beside a load reset all four nodes.
      type = types.ints.between 1 2;
      default = 2;
      example = 1;
      description = ''
        Kernels that the engine compiles at a time. Each compiler takes gigabytes of the pool that weights are just
        being loaded into.
        Changes: engine.env.
      '';
    };
  };

  config = {
    # A boost after fragmentation hides up to 0.87 GiB from MemAvailable, which the guard reads.
    host.sysctls = mkIf onHost ({ "vm.watermark_boost_factor" = mkDefault "0"; }
      // lib.optionalAttrs (minFree != null) { "vm.min_free_kbytes" = mkDefault minFree; });
    host.mask = mkIf (onHost && cfg.swap == "off") [ "swap.img.swap" ];
    engine.env = mkIf onHost { MAX_JOBS = mkDefault jobs; };

    host.units = mkIf beforeRank {
      "sparkserve-memory.service" = render {
        Unit = {
          Description = "sparkserve: an empty page cache and whole blocks of memory before a load";
          Before = "sparkserve-rank.service";
        };
        Service = {
          Type = "oneshot";
          # What was only copied must be on the disk first: dirty pages are not dropped.
          ExecStart = "/bin/sh -c 'sync; echo 1 >/proc/sys/vm/drop_caches; echo 1 >/proc/sys/vm/compact_memory'";
          # 100 GB of dirty pages at 2 GB/s take 50 s.
          TimeoutStartSec = "120";
          ProtectSystem = "strict";
          ProtectHome = "yes";
          NoNewPrivileges = "yes";
        };
      };
    };

    host.files = mkIf beforeRank {
      "/etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-memory.conf".text = render {
        Unit = {
          # A oneshot is over when it is done, so each start of the rank starts it again.
          Wants = "sparkserve-memory.service";
          After = "sparkserve-memory.service";
        };
      };
    };

    assertions = [
      {
        assertion = !onHost || givenJobs == jobs;
        message =
          "engine.env.MAX_JOBS = \"${givenJobs}\": compilers take gigabytes each while weights load, and 22 of them reset four "
          + "nodes: leave it out, and set memory.compileJobs to 1 or 2";
      }
      {
        assertion = config.engine.shmMiB <= shmLimit;
        message =
          "engine.shmMiB = ${toString config.engine.shmMiB}: /dev/shm is taken from the one memory of a Spark, and 64 GiB "
          + "of it switched a node off: use at most ${toString shmLimit}";
      }
      {
        assertion = !onHost || config.host.sysctls."vm.min_free_kbytes" or null == minFree;
        message =
          "host.sysctls has vm.min_free_kbytes = ${config.host.sysctls."vm.min_free_kbytes" or ""}: it lowers the free "
          + "memory that the engine checks at its start by 6.2 GiB, and the guard's margin: leave it out, and use "
          + "memory.prepareLoad against fragmentation";
      }
    ];
  };
}
