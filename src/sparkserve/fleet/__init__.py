"""Fleets: the folders in hosts/, and the plans that Nix makes of them."""

DEFAULT_FLEET = "local-single"
