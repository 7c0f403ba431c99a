# Made from hosts/: the closure of every node as hosts.<fleet>.<node>, and local-image, the engine root of local-single.
{ fleets, host, image }:
let
  # A fleet is read when a node of it is asked for, so a broken fleet.nix stops no other.
  hosts = builtins.mapAttrs
    (fleet: { plans }: builtins.mapAttrs (node: _: host { inherit fleet node plans; }) plans)
    fleets;
  imageOf = closure: image {
    name = "local-image";
    inherit (closure) layers;
    inherit (closure.engine) argv;
    inherit (closure.plan.engine) args;
    env = closure.engine.env // closure.plan.engine.env;
  };
in
{
  inherit hosts;
  images.local-image = imageOf hosts.local-single.spark-0;
}
