{ imports = [ ./says-a.nix ]; l = [ "imports-a" ]; }
