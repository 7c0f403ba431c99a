# The engine as one group over all nodes: where its parts meet, and when it is given up.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.group;
  # From 32768 on the kernel hands ports out to anybody, and a boot would fail now and then.
  port = types.ints.between 1024 32667;
in
{
  options.group = {
    controlPort = mkOption {
      type = port;
      default = 29400;
      example = 29300;
      description = ''
        Where the head's controller listens for the supervisors, on the management network. On the port after it every
        node answers its peers over the cables before a boot.
        Changes: /etc/sparkserve/nftables.conf, group, sparkserve-firewall.service.
      '';
    };
    rendezvousPort = mkOption {
      type = port;
      default = 29500;
      example = 29600;
      description = ''
        The first of 100 ports that boots take turns with for the meeting of their ranks. A rank of an earlier boot that
        is still alive then waits at a port that nobody comes to.
        Changes: group.
      '';
    };
    enginePort = mkOption {
      type = port;
      default = 30000;
      example = 30100;
      description = ''
        Where the engine listens, on the loopback of its node; the front is the only way in.
        Changes: group.
      '';
    };
    startLimit = mkOption {
      # The controller remembers ten (src/sparkserve/group/memory.py): it would never count to more.
      type = types.ints.between 1 10;
      default = 3;
      example = 5;
      description = ''
        Starts in startWindowS before the group stays down. A model that fails three times fails again.
        Changes: group.
      '';
    };
    startWindowS = mkOption {
      type = types.ints.between 1 86400;
      default = 600;
      example = 3600;
      description = "Seconds over which starts are counted. Changes: group.";
    };
    canaryS = mkOption {
      type = types.ints.between 1 3599;
      default = 5;
      example = 8;
      description = "Seconds without a token after which an idle group is asked for one. Changes: group.";
    };
    lostS = mkOption {
      type = types.ints.between 2 3600;
      default = 10;
      example = 20;
      description = ''
        Seconds without a token after which the endpoint says 503; half of it is how long a rank may be silent before
        its boot ends.
        Changes: group.
      '';
    };
  };

  config.assertions = lib.optional (config.fleet.topology != "single") {
    assertion = cfg.canaryS < cfg.lostS;
    message =
      "group.canaryS = ${toString cfg.canaryS} is not below group.lostS = ${toString cfg.lostS}: an idle group would be "
      + "asked for a token only when the endpoint already says 503: lower group.canaryS, or raise group.lostS";
  };
}
