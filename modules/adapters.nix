# Which adapters change SGLang, and their settings. The adapters declare themselves: a folder of
# src/sparkserve/adapters with an adapter.toml is one, and the boot reads the same file.
{ lib, config, ... }:
let
  inherit (lib) mkDefault mkOption types;
  folder = ../src/sparkserve/adapters;
  isAdapter = name: kind: kind == "directory" && builtins.pathExists (folder + "/${name}/adapter.toml");
  read = name: builtins.fromTOML (builtins.readFile (folder + "/${name}/adapter.toml"));
  profile = import (./profiles + "/${config.serving.model}.nix");
  dashed = builtins.replaceStrings [ "_" ] [ "-" ];

  declared = lib.listToAttrs (map
    (name: lib.nameValuePair (dashed name) (read name))
    (lib.attrNames (lib.filterAttrs isAdapter (builtins.readDir folder))));

  setting = s: mkOption {
    type = types.ints.between s.min s.max;
    inherit (s) default description;
  };
in
{
  options.adapters = lib.mapAttrs
    (name: adapter: {
      enable = mkOption {
        type = types.bool;
        default = false;
        description = "${adapter.title} (${adapter.exactness}). `sparkserve adapters explain ${name}` says more.";
      };
      settings = lib.mapAttrs (_: setting) (adapter.settings or { });
    })
    declared;

  config.adapters = lib.mkIf (config.fleet.topology != "single")
    (lib.mapAttrs
      (_: settings: { enable = mkDefault true; settings = lib.mapAttrs (_: mkDefault) settings; })
      profile.group.adapters);
}
