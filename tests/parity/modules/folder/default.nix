{ l = [ "folder" ]; }
