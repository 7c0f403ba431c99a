# Bytes as people read them, and terms in one line.
{ lib }:
rec {
  # GiB with one decimal, rounded.
  gib = bytes:
    let
      size = if bytes < 0 then -bytes else bytes;
      tenths = (size * 10 + 536870912) / 1073741824;
    in
    "${lib.optionalString (bytes < 0) "-"}${toString (tenths / 10)}.${toString (tenths - tenths / 10 * 10)}";
  listed = lib.concatMapStringsSep ", " (term: "${term.name} ${gib term.bytes}");
}
