"""What the plan says of a node's memory, for people. The numbers are Nix's (nix/memory)."""
