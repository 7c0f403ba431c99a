# What is served, and where clients find it.
{ lib, config, ... }:
let
  inherit (lib) mkIf mkOption types;
  cfg = config.serving;
  accelerator = (import (./profiles + "/${cfg.model}.nix")).accelerator or "cpu";
  onHost = config.host.platform != "none";
  single = config.fleet.topology == "single";
  local = lib.hasPrefix "127." cfg.host;
  keys = lib.filter (path: path != null) [ cfg.apiKeyFile cfg.apiKeyCredential ];
  render = import ./types/unit.nix lib;
  text = import ./types/text.nix lib;
  stem = file: lib.head (builtins.match "(.*)\\.nix" file);
  profiles = map stem (lib.attrNames (builtins.readDir ./profiles));

  devicesOf = {
    cpu = [ ];
    # A GB10 and the four functions of its ConnectX-7.
    gb10 = [ "/dev/nvidia0" "/dev/nvidiactl" "/dev/nvidia-uvm" "/dev/nvidia-uvm-tools" ]
      ++ map (n: "/dev/infiniband/uverbs${toString n}") [ 0 1 2 3 ] ++ [ "/dev/infiniband/rdma_cm" ];
  };
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
      example = "192.168.100.10";
      description = ''
        The address that the head listens on. One that others reach, such as the head's management address, wants
        serving.apiKeyFile.
      '';
    };
    port = mkOption {
      # Below 1024 needs a privilege that the engine does not get.
      type = types.ints.between 1024 65535;
      default = 8888;
      example = 8000;
      description = ''
        The port of the OpenAI-compatible endpoint on the head.
        Changes: /etc/sparkserve/nftables.conf, serving, sparkserve-firewall.service.
      '';
    };
    readyTimeoutS = mkOption {
      type = types.ints.between 60 3600;
      default = 300;
      example = 1800;
      description = ''
        Seconds from the start to the first right answer before a start counts as failed. SmolLM2 on two cores
        listened after 24 to 33 s, and after 71 s with other work beside it: 300 is four times the worst.
        Changes: serving.
      '';
    };
    devices = mkOption {
      type = types.listOf (types.strMatching "/dev/[A-Za-z0-9_/-]+" // { description = "path of a device in /dev"; });
      default = devicesOf.${accelerator};
      example = [ "/dev/nvidia0" "/dev/nvidiactl" "/dev/nvidia-uvm" ];
      description = ''
        The devices of the engine, one by one; it gets no other. Without those of InfiniBand NCCL falls back to sockets,
        says nothing, and is ten times slower.
        Changes: engine.devices, /etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-serving.conf.
      '';
    };
    apiKeyFile = mkOption {
      # A path of Nix would be copied into the store, which everybody can read.
      type = types.nullOr text.secret;
      default = null;
      example = "/etc/sparkserve/api-key";
      description = ''
        The file on the head, of mode 0600, whose keys the endpoint asks for: one a line. The front reads it again
        whenever it changes. Only its path is in the plan (docs/secrets.md).
        Changes: serving.
      '';
    };
    apiKeyCredential = mkOption {
      type = types.nullOr text.secret;
      default = null;
      example = "/etc/sparkserve/api-key.cred";
      description = ''
        In place of apiKeyFile: what systemd-creds encrypt --name=api-key wrote of such a file. systemd decrypts it when
        the front starts, so other keys need a restart of that.
        Changes: serving, sparkserve-front.service.
      '';
    };
    openToAll = mkOption {
      type = types.bool;
      default = false;
      description = "Whether everybody who reaches serving.host may ask without a key, also from a network.";
    };
  };

  # A node alone has no unit of a rank.
  config.host.files = mkIf (onHost && !single) {
    "/etc/systemd/system/sparkserve-rank.service.d/60-sparkserve-serving.conf".text = render {
      Service = {
        # RDMA pins what it sends. With the usual 8 MiB registration fails, and the other rank blames the network.
        LimitMEMLOCK = "infinity";
        # A checkpoint is 48 shards, read by 16 threads, beside a socket for each stream.
        LimitNOFILE = "1048576";
      } // lib.optionalAttrs (cfg.devices != [ ]) {
        DevicePolicy = "closed";
        DeviceAllow = map (device: "${device} rw") cfg.devices;
      };
    };
  };

  config.assertions = [
    {
      assertion = onHost || accelerator == "cpu";
      message =
        "host.platform = \"none\" with serving.model = \"${cfg.model}\", which runs on a Spark: without its policy a node "
        + "freezes when memory runs out, and RDMA fails: set it to \"dgx-os\"";
    }
    {
      assertion = local || keys != [ ] || cfg.openToAll;
      message =
        "serving.host = \"${cfg.host}\" opens the endpoint to a network, and it asks for no key: use 127.0.0.1 and an SSH "
        + "tunnel, ${lib.optionalString (!single) "give serving.apiKeyFile, "}or say serving.openToAll = true";
    }
    {
      assertion = lib.length keys < 2;
      message =
        "serving.apiKeyFile = \"${toString cfg.apiKeyFile}\" and serving.apiKeyCredential = "
        + "\"${toString cfg.apiKeyCredential}\" both say where the keys are: leave one out";
    }
  ]
  ++ map (path: {
    assertion = false;
    message =
      "host.files has ${path}, which serving names as the file of its keys: its text would be in the plan and in the Nix "
      + "store, which everybody can read: put the file on the node yourself";
  }) (lib.filter (path: config.host.files ? ${path}) keys);
}
