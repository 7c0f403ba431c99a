# The pin files as data: profile name -> { debs, wheels }, each a list of pins with their store paths. Tree pins:
# stage0.nix.
{ fetch }:
let
  profile = file:
    let
      # Only when it is used: a damaged list must not keep the harness, which can repair it, from being built.
      data = builtins.fromJSON (builtins.readFile (./pins + "/${file}"));
      ofKind = kind: builtins.filter (pin: pin.kind == kind) data.pins;
      fetched = kind: map (pin: pin // { path = fetch name pin; }) (ofKind kind);
      name = builtins.head (builtins.match "(.*)\\.json" file);
    in
    {
      inherit name;
      value = { debs = fetched "deb"; wheels = fetched "wheel"; };
    };
in
builtins.listToAttrs (map profile (builtins.attrNames (builtins.readDir ./pins)))
