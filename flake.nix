{
  description = "DeepSeek-V4.1-Flash from three or four DGX Sparks as one endpoint, every byte pinned";

  # The open world only: deploy-rs and NixOS modules. The sealed outputs (packages, checks, apps) use no input, so Nix
  # never fetches these for `nix build` and `nix flake check`.
  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs";
    deploy-rs.url = "github:serokell/deploy-rs";
    deploy-rs.inputs.nixpkgs.follows = "nixpkgs";
  };

  outputs = { ... }:
    let
      system = "x86_64-linux";
      sealed = import ./nix { inherit system; };
    in
    {
      # Nix wants all names here before it looks at one of them, so none may come out of a fleet.nix.
      packages.${system} = sealed.packages // sealed.images // {
        host-local-single-spark-0 = sealed.hosts.local-single.spark-0;
      };
      # Every host closure, as `.#hosts.<fleet>.<node>`.
      legacyPackages.${system} = { inherit (sealed) hosts; };
      checks.${system} = sealed.checks;
      apps.${system}.default = { type = "app"; program = "${sealed.packages.sparkserve}/bin/sparkserve"; };
      nixosModules.default = import ./modules;
      lib.fleets = sealed.fleets;
      inherit (sealed) deploy;
    };
}
