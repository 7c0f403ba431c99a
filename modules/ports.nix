# Ports of a node, none of which two programs can have: the second one ends with "address in use", at a boot or, with a
# port of the rendezvous range, at one boot in a hundred.
{ lib, config, ... }:
let
  inherit (config) fleet group metrics serving weights;
  at = option: first: count: { inherit option first; last = first + count - 1; };
  used = lib.optionals (fleet.topology != "single") ([
    (at "serving.port" serving.port 1)
    (at "group.controlPort" group.controlPort 2)
    (at "group.enginePort" group.enginePort 1)
    (at "group.rendezvousPort" group.rendezvousPort 100)
    (at "metrics.port" metrics.port 1)
  ] ++ lib.optional (weights.source == "nfs") (at "weights.source = \"nfs\"" 2049 1));
  said = use:
    "${use.option}, which takes ${toString use.first}"
    + lib.optionalString (use.last > use.first) " to ${toString use.last}";
  pairs = lib.concatMap (a: map (b: { inherit a b; }) (lib.filter (b: a.option < b.option) used)) used;
  meet = { a, b }: a.first <= b.last && b.first <= a.last;
in
{
  config.assertions = map ({ a, b }: {
    assertion = false;
    message = "${said a}, and ${said b}: two programs of a node cannot have one port: move one of them";
  }) (lib.filter meet pairs);
}
