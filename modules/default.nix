# Every module of this folder. A file is a module by being here.
let
  files = builtins.attrNames (builtins.readDir ./.);
  isModule = name: name != "default.nix" && builtins.match ".*\\.nix" name != null;
in
{
  imports = map (name: ./. + "/${name}") (builtins.filter isModule files);
}
