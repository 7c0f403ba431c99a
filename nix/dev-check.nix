# A check that runs development tools over folders and files of the repository, laid out as in the checkout.
{ runPython, dev, source, tools }:
{ name, folders, commands, path ? [ ] }:
let
  folder = path: { name = path; value = source (../. + "/${path}"); };
in
runPython {
  name = "check-${name}";
  interpreter = "${dev}/bin";
  script = source ./dev-check.py;
  # A shell and coreutils for tests of remote command lines; the sandbox has none.
  programs = builtins.concatStringsSep ":" (path ++ [ "${tools}/usr/bin" ]);
  folders = builtins.toJSON (builtins.listToAttrs (map folder folders));
  project = source ../pyproject.toml;
  commands = builtins.toJSON commands;
}
