# Options that are set and change nothing: whoever set them believes that they do.
{ lib, config, ... }:
let
  inherit (config) clocks fleet host kernel serving weights;
  bare = host.platform == "none";
  single = fleet.topology == "single";
  idle = option: value: why: way: {
    assertion = false;
    message = "${option} = ${builtins.toJSON value} changes nothing ${why}: ${way}";
  };
  unwritten = "with host.platform = \"none\", for which no file of the operating system is written";
  platform = "leave it out, or set host.platform";
in
{
  config.assertions =
    lib.optionals bare (
      lib.optional (kernel.release != null) (idle "kernel.release" kernel.release unwritten platform)
      ++ lib.optional (kernel.pageSizeKiB != 4) (idle "kernel.pageSizeKiB" kernel.pageSizeKiB unwritten platform)
      ++ lib.optional (kernel.args != [ ]) (idle "kernel.args" kernel.args unwritten platform)
      ++ lib.optional kernel.desktop (idle "kernel.desktop" true unwritten platform)
      ++ lib.optional (clocks.gpuMaxMHz != null) (idle "clocks.gpuMaxMHz" clocks.gpuMaxMHz unwritten platform)
      ++ lib.optional (weights.source != "local") (idle "weights.source" weights.source unwritten platform)
    )
    ++ lib.optional (serving.secrets != { } && (bare || single)) (idle "serving.secrets" (lib.attrNames serving.secrets)
      (if single then "for a fleet of one node, whose engine is no unit of systemd" else unwritten)
      (if single then "leave it out" else platform));
}
