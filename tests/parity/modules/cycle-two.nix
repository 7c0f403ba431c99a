{ imports = [ ./cycle-one.nix ]; l = [ "two" ]; }
