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
      packages.${system} = sealed.packages // sealed.hosts // sealed.images;
      checks.${system} = sealed.checks;
      apps.${system}.default = { type = "app"; program = "${sealed.packages.sparkserve}/bin/sparkserve"; };
      nixosModules.default = import ./modules;
      lib.fleets = sealed.fleets;
    };
}
