# suggest wanted known: the path in `known` that an owner probably meant by the path `wanted`, or null.
let
  inherit (builtins) concatStringsSep elemAt filter foldl' genList head length sort stringLength;
  last = list: elemAt list (length list - 1);
  letters = text: genList (i: builtins.substring i 1 text) (stringLength text);
  min = a: b: if a < b then a else b;

  # The least number of letters to insert, delete or replace that makes b of a, one row of the table a time.
  distance =
    a: b:
    let
      to = letters b;
      columns = genList (j: j) (length to);
      cell = row: letter: done: j:
        let
          replaced = elemAt row j + (if letter == elemAt to j then 0 else 1);
        in
        min replaced (1 + min (elemAt row (j + 1)) (last done));
      next = row: letter: foldl' (done: j: done ++ [ (cell row letter done j) ]) [ (head row + 1) ] columns;
    in
    last (foldl' next (columns ++ [ (length to) ]) (letters a));
in
wanted: known:
let
  text = concatStringsSep "." wanted;
  # The right name in the wrong section counts as one letter off.
  rate = path: {
    inherit path;
    off = if last path == last wanted then 1 else distance text (concatStringsSep "." path);
  };
  close = filter (c: c.off * 3 <= stringLength text) (map rate known);
in
if close == [ ] then null else (head (sort (a: b: a.off < b.off) close)).path
