# How much the engine takes on, and whether a node's memory holds it. What does not fit is refused here: a Spark that
# runs out does not kill a process, it freezes (sshd is dead while ping answers), and only its power button helps.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkOption types;
  cfg = config.engine;
  profile = import (./profiles + "/${config.serving.model}.nix");
  model = import ../nix/memory/node.nix { inherit lib config; };
  inherit (import ../nix/memory/words.nix { inherit lib; }) gib listed;

  ranks = lib.length config.fleet.nodes;
  who = "${if config.node.rank == 0 then "rank 0" else "a worker"} of ${toString ranks}";
  scores = 14 * cfg.prefillChunk * cfg.context;
  # Whether the plan would fit if prefills needed nothing for their scores.
  bounded = model.but { chunkedIndexer = true; };
  largest = let fits = n: fitting (model.but { chunk = n; }); in
    lib.filter fits (lib.reverseList (lib.genList (n: 256 * (n + 1)) 32));
  fitting = m: m.pool - m.serve >= model.lines.serve && m.pool - m.start >= model.lines.start;
  allocator = name: {
    assertion = (cfg.env.${name} or null) == (profile.env.${name} or null);
    message =
      "engine.env.${name} = \"${cfg.env.${name} or ""}\": whether segments may grow is measured for an engine (with True "
      + "prefills of more than 64 tokens gave NaN on three Sparks): leave it to the model profile, which has "
      + (if profile.env ? ${name} then "\"${profile.env.${name}}\"" else "none");
  };
in
{
  options.engine = {
    context = mkOption {
      type = types.nullOr (types.ints.between 4096 1048576);
      example = 131072;
      description = ''
        Tokens of the longest request. Without engine.chunkedIndexer a prefill needs 14 bytes for each token of a chunk and
        each before it: 2.6 GiB for 768 x 262144. null: what the model was made for.
        Changes: engine.args, memory.
      '';
    };
    prefillChunk = mkOption {
      # 16384 left a head 2.5 GiB at a million tokens, and it hung.
      type = types.nullOr (types.ints.between 256 8192);
      example = 1024;
      description = ''
        Tokens that are prefilled in one step. More are faster (1,600 tokens a second at 1024 and 2,100 at 2048 on three
        Sparks) and take more memory while it lasts. null: SGLang's own choice.
        Changes: engine.args, memory.
      '';
    };
    chunkedIndexer = mkOption {
      type = types.bool;
      example = true;
      description = ''
        Whether the engine scores a chunk against what is before it in parts of at most 2 GiB. Without it 1024 x 1048576
        tokens take 15 GB at once, on every rank. It tells what the engine can, and makes no engine do it: SGLang 0.5.23
        scores in parts where DeepGEMM runs, and a Spark's engine is not built yet.
        Changes: memory.
      '';
    };
    kvTokens = mkOption {
      # More than 16 Sparks hold, and few enough that no product of it wraps: Nix counts with 64 bits.
      type = types.ints.between 1 100000000;
      example = 1000000;
      description = ''
        Tokens that the key-value cache holds: those of running requests and of prefixes that come again. Of
        DeepSeek-V4.1-Flash each is 1,673 bytes on every rank. It is the only value that keeps memory free: SGLang makes
        its cache as large as engine.staticPercent lets it, and this is its limit.
        Changes: engine.args, memory.
      '';
    };
    maxRunning = mkOption {
      # With five drafts for each, graphs and windows of 64 take 16 GiB.
      type = types.ints.between 1 64;
      example = 8;
      description = ''
        Requests that run at a time. Each batch size up to this has a graph, of about 0.42 GiB.
        Changes: engine.args, memory.
      '';
    };
    staticPercent = mkOption {
      type = types.ints.between 5 97;
      example = 90;
      description = ''
        Percent of the memory free before the load that weights and caches may have. It must let engine.kvTokens in: what
        does not fit SGLang cuts off without a word, differently at each boot.
        Changes: engine.args.
      '';
    };
  };

  config.engine = lib.mapAttrs (_: mkDefault) (profile.sizes (lib.length config.fleet.nodes));

  config.assertions = lib.optional (profile ? ranks && !builtins.elem ranks profile.ranks) {
    assertion = false;
    message =
      "fleet.nodes has ${toString ranks} entries, and serving.model = \"${config.serving.model}\" is split over "
      + "${lib.concatMapStringsSep " or " toString profile.ranks} ranks only (experts of other widths have no kernel, or "
      + "do not fit): list as many nodes";
  }
  ++ map allocator [ "PYTORCH_CUDA_ALLOC_CONF" "PYTORCH_ALLOC_CONF" ]
  ++ map (name: {
    assertion = model == null || cfg.${name} != null;
    message = "engine.${name} = null, and the memory of ${config.serving.model} is counted from it: give a number";
  }) [ "context" "prefillChunk" ]
  ++ lib.optionals (model != null && cfg.context != null && cfg.prefillChunk != null) [
    {
      assertion = cfg.kvTokens >= cfg.context;
      message =
        "engine.kvTokens = ${toString cfg.kvTokens} is less than engine.context = ${toString cfg.context}: no request of "
        + "that length could run: raise the one or lower the other";
    }
    {
      assertion = fitting model || !fitting bounded;
      message =
        "engine.prefillChunk = ${toString cfg.prefillChunk} at engine.context = ${toString cfg.context} needs "
        + "${gib scores} GiB for scores (14 bytes x ${toString cfg.prefillChunk} x ${toString cfg.context}), more than a "
        + "node has left: set engine.chunkedIndexer = true, or lower one of the two"
        + lib.optionalString (largest != [ ]) " (a chunk of ${toString (lib.head largest)} fits)";
    }
    {
      assertion = fitting bounded;
      message =
        "${who} needs ${gib model.start} GiB of memory to start and ${gib model.serve} to serve, and has "
        + "${gib model.pool}, of which the guard wants ${gib model.lines.start} and then ${gib model.lines.serve} free: "
        + "${listed model.terms}: use more nodes, or lower engine.kvTokens, engine.maxRunning, engine.prefillChunk, "
        + "engine.context or engram.cacheGiB";
    }
    {
      assertion = model.room cfg.staticPercent >= model.caches;
      message =
        "engine.staticPercent = ${toString cfg.staticPercent} leaves ${gib (model.room cfg.staticPercent)} GiB for "
        + "caches, and engine.kvTokens = ${toString cfg.kvTokens} needs ${gib model.caches}: SGLang would cut it: raise "
        + "the one or lower the other";
    }
  ];
}
