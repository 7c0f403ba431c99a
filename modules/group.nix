# The engine as one group over all nodes: where its parts meet, and when it is given up.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.group;
  # From 32768 on the kernel hands ports out to anybody, and a boot would fail now and then.
  port = types.ints.between 1024 32667;
  ports = [ cfg.controlPort (cfg.controlPort + 1) cfg.enginePort ];
  inside = lib.filter (p: p >= cfg.rendezvousPort && p < cfg.rendezvousPort + 100) ports;
in
{
  options.group = {
    controlPort = mkOption {
      type = port;
      default = 29400;
      description = ''
        Where the head's controller listens for the supervisors, on the management network. On the port after it every
        node answers its peers over the cables before a boot.
      '';
    };
    rendezvousPort = mkOption {
      type = port;
      default = 29500;
      description = ''
        The first of 100 ports that boots take turns with for the meeting of their ranks. A rank of an earlier boot that
        is still alive then waits at a port that nobody comes to.
      '';
    };
    enginePort = mkOption {
      type = port;
      default = 30000;
      description = "Where the engine listens, on the loopback of its node; the front is the only way in.";
    };
    startLimit = mkOption {
      # The controller remembers ten (src/sparkserve/group/memory.py): it would never count to more.
      type = types.ints.between 1 10;
      default = 3;
      description = "Starts in startWindowS before the group stays down. A model that fails three times fails again.";
    };
    startWindowS = mkOption {
      type = types.ints.positive;
      default = 600;
      description = "Seconds over which starts are counted.";
    };
    canaryS = mkOption {
      type = types.ints.positive;
      default = 5;
      description = "Seconds without a token after which an idle group is asked for one.";
    };
    lostS = mkOption {
      type = types.ints.between 2 3600;
      default = 10;
      description = ''
        Seconds without a token after which the endpoint says 503; half of it is how long a rank may be silent before
        its boot ends.
      '';
    };
  };

  config.assertions = map (p: {
    assertion = false;
    message =
      "group.rendezvousPort = ${toString cfg.rendezvousPort} takes the 100 ports from there, and ${toString p} is one "
      + "of them: move group.controlPort, group.enginePort or group.rendezvousPort";
  }) inside;
}
