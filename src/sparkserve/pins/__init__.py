"""Pins: which bytes everything is made of, and how they come into the Nix store.

`nix/profiles/<name>.toml` says what is wanted; `lock` resolves it into `nix/pins/<name>.json`; `fetch`
downloads what the store lacks; `check` proves that all of it is there. Nix finds a pin by its name and hash.
"""

# The profiles whose pins the harness is built from. bootstrap.sh runs before Python and has the same list.
BUILDER = ("stage0", "base", "tools", "harness")
