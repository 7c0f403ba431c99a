# Packages made from hosts/: host-<fleet>-<node> for every node, and local-image, the engine root of local-single.
{ fleets, host, image }:
let
  # An error in one fleet must not hide the packages of the others: `lib.fleets.<fleet>` and checks/plan.nix report it.
  nodesOf = fleet:
    let names = builtins.tryEval (builtins.attrNames fleets.${fleet}.plans);
    in if names.success then names.value else [ ];
  closures = builtins.listToAttrs (builtins.concatMap
    (fleet: map
      (node: { name = "host-${fleet}-${node}"; value = host { inherit fleet node; inherit (fleets.${fleet}) plans; }; })
      (nodesOf fleet))
    (builtins.attrNames fleets));
  imageOf = closure: image {
    name = "local-image";
    inherit (closure) layers;
    inherit (closure.engine) argv;
    inherit (closure.plan.engine) args;
    env = closure.engine.env // closure.plan.engine.env;
  };
in
{
  hosts = closures;
  images.local-image = imageOf closures.host-local-single-spark-0;
}
