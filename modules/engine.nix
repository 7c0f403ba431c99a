# How the engine runs. The model profile gives all values; a fleet adds to them or replaces them.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkOption types;
  cfg = config.engine;
  packages = lib.attrNames (builtins.readDir ../pkgs);
  profile = import (./profiles + "/${config.serving.model}.nix");

  # These follow from other options; given twice, the engine would take the last and the plan would be wrong.
  owned = {
    "--host" = "serving.host";
    "--port" = "serving.port";
    "--served-model-name" = "serving.model";
    "--model-path" = "engine.model";
  };
  flag = arg: lib.head (builtins.match "([^=]*)(=.*)?" arg);
  taken = lib.filter (arg: owned ? ${flag arg}) cfg.args;
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
      example = [ "--max-running-requests" "8" ];
    };
    env = mkOption {
      type = types.attrsOf types.str;
      description = "Environment on top of the engine root's. The machine's own is not passed on.";
      example = { OMP_NUM_THREADS = "4"; };
    };
    shmMiB = mkOption {
      type = types.ints.positive;
      description = "Limit of the engine's own /dev/shm, where its processes meet. Taken only as used.";
    };
  };

  config.engine = {
    package = mkDefault profile.package;
    model = mkDefault profile.model;
    args = profile.args;
    env = lib.mapAttrs (_: mkDefault) profile.env;
    shmMiB = mkDefault profile.shmMiB;
  };

  config.assertions = map (arg: {
    assertion = false;
    message = "engine.args has \"${arg}\": set ${owned.${flag arg}} instead";
  }) taken;
}
