# Values that carry a condition or a priority until an option merges its definitions.
errors:
let
  inherit (builtins) concatMap filter foldl' head isAttrs length mapAttrs;
  kind = value: if isAttrs value then value._type or null else null;
in
rec {
  mkIf = condition: content: { _type = "if"; inherit condition content; };
  mkMerge = contents: { _type = "merge"; inherit contents; };
  mkOverride = priority: content: { _type = "override"; inherit priority content; };
  mkOptionDefault = mkOverride 1500;
  mkDefault = mkOverride 1000;
  mkForce = mkOverride 50;

  # A set under a property becomes plain sets whose members carry it. Only so can a condition read the config
  # that it is part of: names are known before conditions are.
  pushDown = value:
    let
      onto = f: map (inner: if isAttrs inner then mapAttrs (_: f) inner else inner) (pushDown value.content);
    in
    {
      merge = concatMap pushDown value.contents;
      "if" = onto (mkIf value.condition);
      override = onto (mkOverride value.priority);
    }.${toString (kind value)} or [ value ];

  # One definition as the list of values whose conditions hold.
  discharge = value:
    {
      merge = concatMap discharge value.contents;
      "if" = if holds value.condition then discharge value.content else [ ];
    }.${toString (kind value)} or [ value ];

  holds = condition: if builtins.isBool condition then condition else errors.fail "FLEET.EVAL" {
    expected = "true or false as the condition of mkIf";
    found = errors.show condition;
    where = "a module of this fleet";
    way = "Compare it with something.";
  };

  # The definitions of the strongest (lowest) priority, without the mark.
  strongest = defs:
    let
      marked = def: kind def.value == "override";
      priority = def: if marked def then def.value.priority else 100;
      # Weaker than 9999 counts only without rivals, as in nixpkgs.lib.
      start = if length defs == 1 then priority (head defs) else 9999;
      best = foldl' (low: def: if priority def < low then priority def else low) start defs;
    in
    map (def: if marked def then def // { value = def.value.content; } else def)
      (filter (def: priority def == best) defs);
}
