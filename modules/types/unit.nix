# Text of a systemd unit from { Unit = { Key = value; }; ... }. A list is the key once for each entry.
lib: sections:
let
  line = key: value:
    if builtins.isList value then lib.concatMapStringsSep "\n" (each: "${key}=${each}") value else "${key}=${value}";
  section = name: "[${name}]\n" + lib.concatStringsSep "\n" (lib.mapAttrsToList line sections.${name}) + "\n";
  # systemd takes any order; people look for these three in this one.
  order = [ "Unit" "Service" "Install" ];
  names = lib.filter (name: sections ? ${name}) order
    ++ lib.filter (name: !(builtins.elem name order)) (lib.attrNames sections);
in
lib.concatMapStringsSep "\n" section names
