# Text of a systemd unit from { Unit = { Key = value; }; ... }. A list is the key once for each entry.
lib: sections:
let
  # A line break would begin a setting that nobody wrote, and a \ at the end takes the next line in.
  whole = text: builtins.match ".*\\\\" text == null && builtins.replaceStrings [ "\n" "\r" ] [ "" "" ] text == text;
  line = key: value:
    let text = "${key}=${value}";
    in if whole text then text else (import ../../nix/throw.nix).fail "FLEET.OPTION" {
      expected = "one line for a setting of a unit";
      found = text;
      where = "the text of a systemd unit";
      way = "Take the line break, or the \\ at its end, out of the option that this value is of.";
    };
  lines = key: value: if builtins.isList value then map (line key) value else [ (line key value) ];
  section = name:
    "[${name}]\n" + lib.concatStringsSep "\n" (builtins.concatLists (lib.mapAttrsToList lines sections.${name})) + "\n";
  # systemd takes any order; people look for these three in this one.
  order = [ "Unit" "Service" "Install" ];
  names = lib.filter (name: sections ? ${name}) order
    ++ lib.filter (name: !(builtins.elem name order)) (lib.attrNames sections);
in
lib.concatMapStringsSep "\n" section names
