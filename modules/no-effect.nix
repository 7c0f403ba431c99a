# Options that are set and change nothing: whoever set them believes that they do.
{ lib, config, options, ... }:
let
  inherit (config) fleet host serving weights;
  bare = host.platform == "none";
  single = fleet.topology == "single";
  idle = why: way: option: value: {
    assertion = false;
    message = "${option} = ${builtins.toJSON value} changes nothing ${why}: ${way}";
  };
  unwritten = idle "with host.platform = \"none\", for which no file of the operating system is written"
    "leave it out, or set host.platform";
  alone = idle "for a fleet of one node, whose engine is no unit of systemd and has no peers" "leave it out";

  frontless = idle "for a fleet of one node, whose engine answers by itself and asks for no key"
    "leave it out, or serve from several nodes";
  keys = lib.filter (name: serving.${name} != null) [ "apiKeyFile" "apiKeyCredential" ];

  # What a fleet says of a section that is not its default.
  said = refuse: section: except:
    let own = config.${section}; in
    map (name: refuse "${section}.${name}" own.${name})
      (lib.filter (name: !builtins.elem name except && own.${name} != options.${section}.${name}.default)
        (lib.attrNames own));
in
{
  config.assertions =
    lib.optionals bare (
      lib.concatMap (section: said unwritten section [ ]) [ "clocks" "kernel" "memory" "recovery" ]
      ++ lib.optional (weights.source != "local") (unwritten "weights.source" weights.source)
    )
    ++ lib.optionals single (
      said alone "group" [ ]
      ++ said alone "metrics" [ "engine" ]
      ++ said alone "guard" [ "enable" "startup" "steady" ]
      # The rule about Wi-Fi reads the interface (modules/kernel-rules.nix).
      ++ said alone "fabric" [ "managementInterface" ]
    )
    ++ map (name: frontless "serving.${name}" serving.${name}) (lib.optionals single keys)
    ++ lib.optional (serving.openToAll && (keys != [ ] || lib.hasPrefix "127." serving.host))
      (idle "for an endpoint on loopback or with a key" "leave it out" "serving.openToAll" true);
}
