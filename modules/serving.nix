# What is served, and where clients find it.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.serving;
  stem = file: lib.head (builtins.match "(.*)\\.nix" file);
  profiles = map stem (lib.attrNames (builtins.readDir ./profiles));
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
      description = "The address that the head listens on. Loopback only: requests carry no credentials yet.";
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
        Seconds from the start to the first right answer before a start counts as failed. SmolLM2 on two cores
        listened after 24 to 33 s, and after 71 s with other work beside it: 300 is four times the worst.
      '';
    };
  };

  config.assertions = [
    {
      assertion = lib.hasPrefix "127." cfg.host;
      message =
        "serving.host = \"${cfg.host}\" opens the endpoint to a network without credentials: use "
        + "127.0.0.1, and an SSH tunnel to reach it from elsewhere";
    }
  ];
}
