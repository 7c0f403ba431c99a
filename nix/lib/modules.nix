# evalModules: collects modules through imports, declares their options, merges the definitions of each.
# Order of definitions as in nixpkgs.lib: breadth first through imports, then the last module first.
{ functions, properties, errors, types, mkOption, lib }:
let
  inherit (builtins) attrNames concatLists concatMap elem filter functionArgs genericClosure head isAttrs;
  inherit (builtins) isFunction length mapAttrs unsafeGetAttrPos zipAttrsWith;
  inherit (errors) fail optionName outside place show whereIs;
  suggest = import ../suggest.nix;
  isOption = value: value._type or null == "option";
  wrong = where: expected: found: way: fail "FLEET.EVAL" { where = place where; inherit expected found way; };
  group = zipAttrsWith (_: found: found);
  level = module: map (config: module // { inherit config; }) (properties.pushDown module.config);

  # A set or a function gets a key from its place, so only paths are deduplicated.
  collect = args: above: file: functions.imap1 (
    n: value:
    let
      module = load args file "${head above}:anon-${toString n}" value;
    in
    if elem module.key above then
      wrong file "imports without a circle" module.key "Take the import out."
    else
      module // { children = collect args ([ module.key ] ++ above) module.file module.imports; }
  );

  load = args: file: key: value:
    if isFunction value then
      canonical file key (call args file value)
    else if isAttrs value && elem (value._type or null) [ "if" "override" ] then
      canonical file key { config = value; }
    else if isAttrs value && !value ? _type then
      canonical file key value
    else if builtins.isPath value || builtins.isString value then
      load args (toString value) (toString value) (import value)
    else
      wrong file "a module: a path, a function or a set" (show value) "Correct it, or what imports it.";

  # A function gets what it names without a look at the values: those may depend on config.
  call = args: file: function:
    let
      missing = name: wrong file "an argument that exists" name "Set _module.args.${name}, or take it out.";
      value = name: _: args.${name} or args.config._module.args.${name} or (missing name);
    in
    function (args // mapAttrs value (functionArgs function));

  canonical = file: key: module:
    let
      long = module ? config || module ? options;
      other = [ "_class" "disabledModules" "freeformType" "key" "require" ];
      known = [ "_file" "imports" "options" "config" ];
      stray = if long then attrNames (removeAttrs module known) else filter (name: module ? ${name}) other;
    in
    if stray != [ ] then
      wrong file "imports, options and config, or definitions only"
        "${head stray}, not in the subset" "Move it into config, or take it out."
    else
      {
        inherit key;
        file = toString module._file or file;
        imports = module.imports or [ ];
        options = module.options or { };
        config = if long then module.config or { } else removeAttrs module [ "_file" "imports" ];
      };

  # One level of names: the options declared there in their tree, and the definitions that have no option.
  match = prefix: modules: levels:
    let
      declarations = { file, options, ... }: mapAttrs (_: value: { inherit file; options = value; }) options;
      declared = group (map declarations modules);
      defined = group (map definitions levels);
      definitions = { file, config, ... }@at:
        if isAttrs config then
          mapAttrs (name: value: { inherit file value; pos = unsafeGetAttrPos name config; }) config
        else
          fail "FLEET.OPTION" {
            expected = "the options of ${optionName prefix} by name";
            found = show config;
            where = whereIs at;
            way = "Set one of its options: ${builtins.concatStringsSep ", " (attrNames declared)}.";
          };
      results = mapAttrs (
        name: found:
        let
          loc = prefix ++ [ name ];
          defs = defined.${name} or [ ];
          first = head found;
        in
        if functions.all (d: !d.options ? _type) found then
          match loc found (concatMap (def: level (def // { config = def.value; })) defs)
        else if length found > 1 then
          outside "the second declaration of ${optionName loc}"
        else if !isOption first.options then
          wrong first.file "mkOption at ${optionName loc}" first.options._type "Wrap the type in mkOption."
        else
          { options = evalOption loc first defs; unmatched = [ ]; }
      ) declared;
      locate = name: map (def: def // { path = prefix ++ [ name ]; });
      unknown = mapAttrs locate (removeAttrs defined (attrNames declared));
      deeper = mapAttrs (_: result: result.unmatched) results;
    in
    {
      options = mapAttrs (_: result: result.options) results;
      # Without definitions nothing below is looked at, so options may be costly as long as nobody sets them.
      unmatched = if levels == [ ] then [ ] else concatLists (builtins.attrValues (unknown // deeper));
    };

  evalOption = loc: { file, options }: defs:
    let
      default = { inherit file; value = properties.mkOptionDefault options.default; };
      merged = mergeDefinitions loc options.type (functions.optional (options ? default) default ++ defs);
    in
    options // {
      inherit loc;
      inherit (merged) isDefined;
      value = (options.apply or (value: value)) merged.value;
      definitions = map (def: def.value) merged.defs;
      files = map (def: def.file) merged.defs;
    };

  # All definitions of one value: conditions, then priorities, then the type.
  mergeDefinitions = loc: type: given:
    let
      holding = def: map (value: def // { inherit value; }) (properties.discharge def.value);
      defs = properties.strongest (concatMap holding given);
      invalid = filter (def: !type.check def.value) defs;
    in
    {
      inherit defs;
      isDefined = defs != [ ];
      value =
        if invalid != [ ] then
          fail "FLEET.OPTION" {
            expected = "${optionName loc} as ${type.description}";
            found = show (head invalid).value;
            where = whereIs (head invalid);
            way = "Change the value of ${optionName loc}.";
          }
        else if defs != [ ] then
          type.merge loc defs
        else if type ? emptyValue then
          type.emptyValue loc
        else
          fail "FLEET.OPTION" {
            expected = "a value for ${optionName loc}";
            found = "none";
            where = "this fleet";
            way = "Set ${optionName loc} to a value: ${type.description}.";
          };
    };

  values = mapAttrs (_: node: if isOption node then node.value else values node);
  paths = prefix: options:
    let
      below = name: node: if isOption node then [ ] else paths (prefix ++ [ name ]) node;
    in
    concatLists (functions.mapAttrsToList (name: node: [ (prefix ++ [ name ]) ] ++ below name node) options);

  # modules -> { config, options }. An unknown option is an error as soon as one of the two is looked at.
  evalModules = { modules, prefix ? [ ], specialArgs ? { } }:
    let
      own = { _file = "nix/lib/modules.nix"; options._module.args = mkOption { type = types.arguments; }; };
      args = { inherit lib config specialArgs; inherit (found) options; } // specialArgs;
      all = functions.reverseList (genericClosure {
        startSet = collect args [ "" ] "<unknown-file>" (modules ++ [ own ]);
        operator = module: module.children;
      });
      found = match prefix all (concatMap level all);
      config = values found.options;
      stray = head found.unmatched;
      guess = suggest stray.path (paths prefix (removeAttrs found.options [ "_module" ]));
      checked = if found.unmatched == [ ] then (value: value) else fail "FLEET.OPTION" {
        expected = "an option of this fleet";
        found = optionName stray.path;
        where = whereIs stray;
        way = if guess == null then "Remove it." else "Did you mean ${optionName guess}?";
      };
    in
    { config = checked (removeAttrs config [ "_module" ]); options = checked found.options; };
in
{ inherit evalModules mergeDefinitions; }
