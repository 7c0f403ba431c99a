# Proves: `deploy` is what deploy-rs takes, for every node of every fleet, and not for all at once; of local-triangle it is
# the golden copy; a real host closure has the two programs that deploy-rs looks for, and they start. What the schema refuses:
# tests/unit/test_deployrs_lines.py. A wanted change: the log of the failed check has the new tests/golden/deploy-rs.json.
# Costs: a second once a host closure of local-triangle is built. Only that one is: with the paths of all nodes in it, as in
# deploy-rs's own checks, a check builds the closures of all nodes.
{ runPython, source, lib, fleets, hosts, sparkserve, deploy }:
let
  inherit (builtins) mapAttrs removeAttrs toJSON tryEval unsafeDiscardStringContext;
  # Paths of closures that need not be built: all of one length, as a real one.
  path = fleet: node: _: "/nix/store/00000000000000000000000000000000-host-${fleet}-${node}";
  named = import ../nix/deploy-rs.nix { inherit lib fleets; hosts = mapAttrs (fleet: mapAttrs (path fleet)) hosts; };
  # As deploy-rs narrows it to a target.
  target = "local-triangle_spark-1";
  one = deploy // { nodes = { ${target} = deploy.nodes.${target}; }; };
in
if (tryEval (toJSON deploy.nodes)).success then
  throw "deploy.nodes can be deployed all at once"
else
  runPython {
    name = "check-deploy-rs";
    interpreter = "${sparkserve}/bin";
    script = "${source ./deploy-rs}/check.py";
    all = unsafeDiscardStringContext (toJSON (named // { nodes = removeAttrs named.nodes [ "_all" ]; }));
    one = unsafeDiscardStringContext (toJSON one);
    closure = hosts.local-triangle.spark-1;
    golden = source ../tests/golden/deploy-rs.json;
  }
