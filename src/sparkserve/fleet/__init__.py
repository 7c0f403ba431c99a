"""Fleets: the folders in hosts/, and the plans that Nix makes of them."""

DEFAULT_FLEET = "local-triangle"
CHOSEN = "SPARKSERVE_FLEET"  # the environment variable with another default
