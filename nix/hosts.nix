# Made from hosts/: the closure of every node as hosts.<fleet>.<node>, and images: local-image, the engine root of
# local-single, and serving-image, that of a DGX Spark without a model.
{ fleets, host, image, engine-gb10 }:
let
  # A fleet is read when a node of it is asked for, so a broken fleet.nix stops no other.
  hosts = builtins.mapAttrs
    (fleet: { plans, ... }: builtins.mapAttrs (node: _: host { inherit fleet node plans; }) plans)
    fleets;
  inherit (hosts.local-single.spark-0) engine layers plan;
in
{
  inherit hosts;
  images.local-image = image {
    name = "local-image";
    inherit layers;
    inherit (engine) argv;
    inherit (plan.engine) args;
    env = engine.env // plan.engine.env;
  };
  images.serving-image = image {
    name = "serving-image";
    inherit (engine-gb10) layers argv env;
    args = [ ];
    architecture = "arm64";
    proof = engine-gb10;
  };
}
