# The types: a check for one definition, a merge for the definitions of the strongest priority, and for some
# what an option without any definition has (emptyValue, a function of its place).
{ functions, errors, modules, mkOptionDefault }:
let
  inherit (builtins) all concatLists elem filter head isAttrs isList isString length mapAttrs match tail;
  inherit (functions) concatMapStringsSep imap1 last;
  inherit (modules) mergeDefinitions;

  conflict = loc: defs: errors.fail "FLEET.OPTION" {
    expected = "one value for ${errors.optionName loc}";
    found = concatMapStringsSep " and " (def: errors.show def.value) defs;
    where = concatMapStringsSep " and " errors.whereIs defs;
    way = "Keep one of them, or mark the one that counts with lib.mkForce.";
  };
  equal = loc: defs:
    let
      others = filter (def: def.value != (head defs).value) (tail defs);
    in
    if others == [ ] then (head defs).value else conflict loc [ (head defs) (head others) ];

  type = description: check: { merge ? equal, ... }@more:
    more // { _type = "option-type"; inherit description check merge; };
  argument = type "anything" (_: true) {
    merge = loc: defs: if length defs == 1 then (head defs).value else conflict loc defs;
  };
  narrow = base: description: check: addCheck base check // { inherit description; };
  inherit (public) addCheck int str path;

  # Merges sets member by member.
  members = elem: loc: defs:
    let
      located = { file, value, ... }:
        mapAttrs (n: v: { inherit file; value = v; pos = builtins.unsafeGetAttrPos n value; }) value;
    in
    builtins.zipAttrsWith (name: mergeDefinitions (loc ++ [ name ]) elem) (map located defs);

  public = {
    bool = type "true or false" builtins.isBool { };
    int = type "integer" builtins.isInt { };
    str = type "string" isString { };
    nonEmptyStr = narrow str "string that is not blank" (value: match "[ \t\n]*" value == null);
    strMatching = pattern: narrow str "string that matches ${pattern}" (value: match pattern value != null);
    enum = values:
      type "one of ${concatMapStringsSep ", " errors.show values}" (value: elem value values) { };
    port = public.ints.between 0 65535;
    ints = {
      between = low: high:
        narrow int "integer from ${toString low} to ${toString high}" (value: value >= low && value <= high);
      positive = narrow int "integer above 0" (value: value > 0);
      unsigned = narrow int "integer, 0 or above" (value: value >= 0);
    };
    path =
      let
        textual = value: isString value || builtins.isPath value || value ? outPath || value ? __toString;
      in
      type "absolute path" (value: textual value && builtins.substring 0 1 (toString value) == "/") { };

    addCheck = base: check: base // { check = value: base.check value && check value; };

    listOf = elem: type "list of ${elem.description}" isList {
      emptyValue = _: [ ];
      merge = loc: defs:
        let
          # This is the name that a submodule in the list sees.
          name = n: m: "[definition ${toString n}-entry ${toString m}]";
          entry = n: def: m: value:
            mergeDefinitions (loc ++ [ (name n m) ]) elem [ (def // { inherit value; }) ];
          entries = concatLists (imap1 (n: def: imap1 (entry n def) def.value) defs);
        in
        map (e: e.value) (filter (e: e.isDefined) entries);
    };

    attrsOf = elem: type "set of ${elem.description}" isAttrs {
      emptyValue = _: { };
      merge = loc: defs:
        mapAttrs (_: m: m.value) (functions.filterAttrs (_: m: m.isDefined) (members elem loc defs));
    };

    # Arguments of module functions; private. Lazy in its values, so a value's condition cannot unset it.
    arguments = type "module arguments" isAttrs {
      emptyValue = _: { };
      merge = loc: defs: mapAttrs (_: m: m.value) (members argument loc defs);
    };

    nullOr = elem: type "null or ${elem.description}" (value: value == null || elem.check value) {
      emptyValue = _: null;
      merge = loc: defs:
        if all (def: def.value != null) defs then
          elem.merge loc defs
        else if all (def: def.value == null) defs then
          null
        else
          conflict loc defs;
    };

    submodule = given:
      let
        named = { _module.args.name = mkOptionDefault "‹name›"; };
        base = [ named ] ++ (if isList given then given else [ given ]);
        evaluate = prefix: more: (modules.evalModules { inherit prefix; modules = base ++ more; }).config;
        asModule = { file, value, ... }:
          { _file = file; } // (if isAttrs value then { config = value; } else { imports = [ value ]; });
      in
      type "set of options" (value: isAttrs value || builtins.isFunction value || path.check value) {
        emptyValue = loc: evaluate loc [ ];
        merge = loc: defs: evaluate loc ([ { _module.args.name = last loc; } ] ++ map asModule defs);
      };
  };
in
public
