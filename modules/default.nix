# Every module: a file of this folder or of platform/dgx-os is one by being there.
let
  modulesOf = folder:
    let
      files = builtins.attrNames (builtins.readDir folder);
      isModule = name: name != "default.nix" && builtins.match ".*\\.nix" name != null;
    in
    map (name: folder + "/${name}") (builtins.filter isModule files);
in
{
  imports = modulesOf ./. ++ modulesOf ./platform/dgx-os;
}
