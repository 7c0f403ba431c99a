# The pin files as data: profile name -> { debs, wheels }, each a list of pins with their store paths. Tree pins:
# stage0.nix.
{ fetch }:
let
  profile = file:
    let
      data = builtins.fromJSON (builtins.readFile (./pins + "/${file}"));
      ofKind = kind: builtins.filter (pin: pin.kind == kind) data.pins;
      fetched = kind: map (pin: pin // { path = fetch pin; }) (ofKind kind);
    in
    {
      name = data.profile;
      value = { debs = fetched "deb"; wheels = fetched "wheel"; };
    };
in
builtins.listToAttrs (map profile (builtins.attrNames (builtins.readDir ./pins)))
