# The memory model of the node that `config` is of; null for a model profile without shapes.
{ lib, config }:
let
  inherit (config) engine fleet node;
  profile = import (../../modules/profiles + "/${config.serving.model}.nix");
  # NCCL reads what is not a number as not given; these are its own values then.
  number = name: default:
    let text = engine.env.${name} or "";
    in if builtins.match "0|[1-9][0-9]{0,8}" text == null then default else builtins.fromJSON text;
  given = {
    tp = lib.length fleet.nodes;
    head = node.rank == 0;
    inherit (engine) chunkedIndexer context kvTokens shmMiB;
    chunk = engine.prefillChunk;
    running = engine.maxRunning;
    pageKiB = config.kernel.pageSizeKiB;
    cacheGiB = if config.engram.enable then config.engram.cacheGiB else 0;
    # sshd is in the system's term, which was measured with one that ran.
    keptMiB = if config.host.platform == "none" then 0 else
      lib.foldl' (sum: mib: sum + mib) 0 (lib.mapAttrsToList
        (unit: mib: if unit != "ssh.service" then mib else if mib > 128 then mib - 128 else 0) config.recovery.protect);
    nccl = {
      simpleBytes = number "NCCL_BUFFSIZE" 4194304;
      ll128Bytes = number "NCCL_LL128_BUFFSIZE" 4915200;
      channels = number "NCCL_MAX_NCHANNELS" 64;
    };
  };
  model = import ./. { inherit lib; inherit (profile) shapes; };
in
if !(profile ? shapes) then null else model given // {
  # The same with other values.
  but = change: model (given // change);
  # Below these the guard kills.
  lines = {
    start = config.guard.startup.lineMiB * 1048576;
    serve = config.guard.steady.lineMiB * 1048576;
  };
}
