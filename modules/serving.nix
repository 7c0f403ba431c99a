# What is served, and where clients find it.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.serving;
  profiles = map (lib.removeSuffix ".nix") (lib.attrNames (builtins.readDir ./profiles));
in
{
  options.serving = {
    model = mkOption {
      type = types.enum profiles;
      description = "The model profile: a file of modules/profiles. It is also the model's name in requests.";
    };
    host = mkOption {
      type = import ./types/ipv4.nix lib;
      default = "127.0.0.1";
      description = "The address that the head listens on. Loopback only, because requests carry no credentials yet.";
    };
    port = mkOption {
      # Below 1024 needs a privilege that the engine does not get.
      type = types.ints.between 1024 65535;
      default = 8888;
      description = "The port of the OpenAI-compatible endpoint on the head.";
    };
    readyTimeoutS = mkOption {
      type = types.ints.between 60 3600;
      default = 300;
      description = ''
        Seconds from start to the first right answer before a start counts as failed. SGLang spends 24 s on
        Python imports alone on two quiet cores, and took 71 s with other work beside it: 60 is the least that is
        fair, 300 leaves four times the worst that was measured.
      '';
    };
  };

  config.assertions = [
    {
      assertion = lib.hasPrefix "127." cfg.host;
      message =
        "serving.host = \"${cfg.host}\" opens the endpoint to the network without credentials: use 127.0.0.1, and "
        + "an SSH tunnel to reach it from elsewhere";
    }
  ];
}
