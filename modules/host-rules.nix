# What a closure must not do to its node, whichever option asks for it.
{ lib, config, ... }:
let
  inherit (config) host;
  folder = "/etc/systemd/system";
  listed = lib.concatStringsSep ", ";
  own = lib.attrNames host.units;
  links = map (name: "${folder}/${name}") (own ++ host.mask)
    ++ lib.optional (host.defaultTarget != null) "${folder}/default.target";
  files = lib.attrNames host.files;

  # What a login and the network are made of.
  reach = "(sshd?|NetworkManager|networking|dbus|dbus-broker|netplan-.*"
    + "|systemd-(networkd|resolved|udevd|logind|journald)(-(control|kernel|dev-log))?)(@.*)?\\.(service|socket)";
  needed = name:
    lib.elem name own || lib.hasPrefix "sparkserve-" name || config.recovery.protect ? ${name}
    || builtins.match reach name != null;
  masked = lib.unique (lib.filter needed host.mask);
  double = lib.filter (path: lib.elem path links) files;
  inside = lib.filter (path: lib.any (lib.hasPrefix "${path}/") (files ++ links)) files;
in
{
  config.assertions = [
    {
      assertion = masked == [ ];
      message =
        "host.mask, to which kernel.idleUnits is added, has ${listed masked}: without it nobody reaches the node, or no "
        + "engine runs there: leave it out";
    }
    {
      assertion = double == [ ];
      message =
        "host.files has ${listed double}, where a unit of host.units, a mask or the default target is put: leave it out, "
        + "or give a drop-in, such as ${folder}/NAME.service.d/60-own.conf";
    }
    {
      assertion = inside == [ ];
      message = "host.files has ${listed inside}, and files below it: a path is a file or a folder, so rename one";
    }
  ];
}
