# Plain functions for modules, named as in nixpkgs.lib. Builtins come first.
rec {
  inherit (builtins) all any attrNames attrValues concatMap concatStringsSep elem filter foldl' genList head;
  inherit (builtins) length listToAttrs mapAttrs;

  optional = condition: value: if condition then [ value ] else [ ];
  optionals = condition: list: if condition then list else [ ];
  optionalAttrs = condition: set: if condition then set else { };
  optionalString = condition: text: if condition then text else "";

  imap0 = f: list: genList (i: f i (builtins.elemAt list i)) (length list);
  imap1 = f: imap0 (i: f (i + 1));
  last = list: builtins.elemAt list (length list - 1);
  reverseList = list: genList (i: builtins.elemAt list (length list - 1 - i)) (length list);
  unique = foldl' (seen: value: if elem value seen then seen else seen ++ [ value ]) [ ];

  nameValuePair = name: value: { inherit name value; };
  genAttrs = names: f: listToAttrs (map (name: nameValuePair name (f name)) names);
  mapAttrs' = f: set: listToAttrs (map (name: f name set.${name}) (attrNames set));
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  filterAttrs = keep: set: removeAttrs set (filter (name: !keep name set.${name}) (attrNames set));

  concatMapStringsSep = separator: f: list: concatStringsSep separator (map f list);
  hasPrefix = prefix: text: builtins.substring 0 (builtins.stringLength prefix) text == prefix;
}
