# The one place that writes an error text of our Nix code. src/sparkserve/nix.py reads the five fields back,
# so no field holds the separator or a line break.
let
  inherit (builtins) concatStringsSep head match;
in
rec {
  fail = id: { expected, found, where, way }:
    throw (concatStringsSep " | " ([ id ] ++ map clean [ expected found where way ]));
  clean = builtins.replaceStrings [ "|" "\n" ] [ "/" " " ];

  show = value:
    {
      list = "[ ${concatStringsSep " " (map show value)} ]";
      set = "a set with ${concatStringsSep ", " (builtins.attrNames value)}";
      lambda = "a function";
    }.${builtins.typeOf value} or (builtins.toJSON value);

  # "serving.port"; an entry of a list goes by its place, counted from 1.
  optionName = loc:
    let
      entry = part: match "\\[definition .*-entry ([0-9]+)]" part;
    in
    concatStringsSep "." (map (p: if entry p == null then p else "(entry ${head (entry p)})") loc);

  # A flake is evaluated from a copy in the store; owners know a file by its place in the checkout.
  place = file: builtins.elemAt (match "(/nix/store/[^/]+/)?(.*)" file) 1;

  # "hosts/a/fleet.nix:7" where the line is known; a definition under mkIf has lost it.
  whereIs = { file, pos ? null, ... }:
    if pos == null then place file else "${place pos.file}:${toString pos.line}";

  outside = what: fail "FLEET.EVAL" {
    expected = "what nix/lib has";
    found = "${what}, not in the subset";
    where = "nix/lib";
    way = "Do without it, or add it to nix/lib together with its parity cases.";
  };
}
