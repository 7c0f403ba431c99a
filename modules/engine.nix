# How the engine runs. The model profile gives all values; a fleet adds to them or replaces them.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkOption types;
  cfg = config.engine;
  # What will be under pkgs/ and is not yet: a fleet of it has plans, and no closure (nix/host.nix says so).
  packages = lib.attrNames (builtins.readDir ../pkgs) ++ [ "deepseek-v41-flash" ];
  profile = import (./profiles + "/${config.serving.model}.nix");
  grouped = config.fleet.topology != "single";

  # SGLang's options that other options of ours decide; given twice, the last counts and the plan would be wrong.
  owned = {
    "--host" = "set serving.host instead";
    "--port" = "set serving.port instead";
    "--served-model-name" = "set serving.model instead";
    "--model-path" = "set engine.model instead";
    "--model" = "set engine.model instead";
    "--config" = "list what the file says in engine.args instead";
    "--context-length" = "set engine.context instead";
    "--chunked-prefill-size" = "set engine.prefillChunk instead";
    "--max-total-tokens" = "set engine.kvTokens instead";
    "--max-running-requests" = "set engine.maxRunning instead";
    "--mem-fraction-static" = "set engine.staticPercent instead";
    "--enable-metrics" = "set metrics.engine instead";
    "--cuda-graph-max-bs-decode" = "set engine.maxRunning instead: each batch size up to it gets a graph";
  }
  // all "leave it out: the memory model counts with SGLang's own choice"
    [
    "--swa-prefix-tails" "--swa-full-tokens-ratio" "--page-size" "--kv-cache-dtype" "--cuda-graph-bs-decode"
    "--speculative-dspark-block-size" "--speculative-num-draft-tokens"
  ]
  // all "give serving.apiKeyFile instead: everybody on the node can read a command line" [ "--api-key" "--admin-api-key" ]
  // all "leave it out: clients of the endpoint speak http" [ "--ssl-keyfile" "--ssl-certfile" ]
  // all "leave it out: fleet.topology and fleet.nodes decide" [
    "--nnodes" "--node-rank" "--dist-init-addr" "--nccl-init-addr"
    "--tp-size" "--tensor-parallel-size" "--pp-size" "--pipeline-parallel-size"
    "--dp-size" "--data-parallel-size" "--ep" "--ep-size" "--expert-parallel-size"
  ];
  all = way: options: lib.listToAttrs (map (option: lib.nameValuePair option way) options);

  # argparse takes --hos for --host, so what an owned option begins with is refused like the option itself.
  begins = arg: lib.filter (lib.hasPrefix (lib.head (builtins.split "=" arg))) (lib.attrNames owned);
  taken = lib.filter (arg: lib.hasPrefix "--" arg && begins arg != [ ]) cfg.args;
  refused = arg:
    let option = lib.head (begins arg);
    in "engine.args has \"${arg}\", which is ${option} to SGLang: ${owned.${option}}";
  isName = name: builtins.match "[A-Za-z_][A-Za-z0-9_]*" name != null;
in
{
  options.engine = {
    package = mkOption {
      type = types.enum packages;
      description = "The engine under pkgs/ that becomes /opt/engine in the engine's root.";
    };
    model = mkOption {
      type = types.enum packages;
      description = "The model under pkgs/ that becomes /model in the engine's root.";
    };
    args = mkOption {
      type = types.listOf types.str;
      description = "Arguments of sglang.launch_server. A fleet's come after the profile's; the last wins.";
      example = [ "--log-level" "debug" ];
    };
    env = mkOption {
      type = types.attrsOf types.str;
      description = "Environment on top of the engine root's. The machine's own is not passed on.";
      example = { OMP_NUM_THREADS = "4"; };
    };
    shmMiB = mkOption {
      # 1 TiB: a rule of modules/memory.nix allows less; without a bound the product with a MiB wraps.
      type = types.ints.between 1 1048576;
      example = 2048;
      description = ''
        Limit of the engine's own /dev/shm, where its processes meet. Taken only as used, and counted whole.
        Changes: engine.shm_mib, memory.
      '';
    };
  };

  config.engine = {
    package = mkDefault profile.package;
    model = mkDefault profile.model;
    args = profile.args ++ lib.optionals grouped profile.group.args;
    env = lib.mapAttrs (_: mkDefault) (profile.env // lib.optionalAttrs grouped profile.group.env);
    shmMiB = mkDefault profile.shmMiB;
  };

  config.assertions = map (message: { assertion = false; inherit message; }) (
    map refused taken
    ++ map (name: "engine.env has \"${name}\": a name is letters, digits and _, and begins with no digit")
      (lib.filter (name: !isName name) (lib.attrNames cfg.env))
  );
}
