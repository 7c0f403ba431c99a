{ imports = [ ./cycle-two.nix ]; l = [ "one" ]; }
