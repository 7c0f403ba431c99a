# Texts of options that become paths, names of units, or lines of files that root's programs read. As free text they
# could write any file of a node, and any line of a unit.
lib:
let
  matching = pattern: description: lib.types.strMatching pattern // { inherit description; };
  # A part of a path: not empty, not . and not .., as another folder would be meant than the one that is read there.
  part = "\\.?[A-Za-z0-9_-][A-Za-z0-9_.-]*";
in
{
  # lib.types.attrsOf looks at values only.
  setOf = names: elem:
    lib.types.addCheck (lib.types.attrsOf elem) (set: lib.all names.check (lib.attrNames set)) // {
      description = "set of ${elem.description}, each by ${names.description}";
    };

  word = matching "[A-Za-z0-9_-]+" "a name of letters, digits, _ and -";
  line = matching "[^[:cntrl:]]+" "one line of text";
  path = matching "(/${part})+" "absolute path without spaces, //, . and .., as a string";
  # The store is everybody's to read; the others are not seen by a unit with ProtectHome and PrivateTmp.
  secret =
    let
      plain = matching "(/${part})+" "";
      hidden = path: lib.any (folder: lib.hasPrefix "${folder}/" path) [ "/nix" "/home" "/root" "/run/user" "/tmp" "/var/tmp" ];
    in
    lib.types.addCheck plain (path: !hidden path) // {
      description = "path, in quotes, of a file that you put on the node yourself: without spaces, //, . and .., and not "
        + "below /nix, /home, /root, /run/user, /tmp and /var/tmp";
    };
  # @ and \ are in names of units, whose folders hold files.
  etcFile = matching "/etc(/\\.?[A-Za-z0-9_@\\:-][A-Za-z0-9_.@\\:+-]*)+" "path of a file below /etc, without // and ..";

  # Where nothing of the operating system is, and no tmpfs. The rank's unit sees no /home.
  folder = parts: said:
    matching "/(srv|mnt|data)(/${parts})+|/var/lib/sparkserve/(engram|weights)(/${parts})*"
      "folder below /srv, /mnt or /data${said}, such as /srv/models (mount or bind what is elsewhere there)";
  inherit part;

  # `kinds` as in a regular expression: "service|socket".
  unit = kinds: example:
    matching "[A-Za-z0-9_\\:-][A-Za-z0-9@_.\\:-]*\\.(${kinds})" "name of a unit with its kind, such as ${example}";

  # One spelling for each, so that rules see what is set. A / is a dot in the name of an interface.
  sysctl = matching "[a-z][a-z0-9_]*(\\.[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)+" "sysctl name with dots, such as vm.swappiness";
  # update-grub reads them as shell, and the kernel's command line has no quotes.
  kernelArg = matching "[A-Za-z0-9_.,:=/+-]+" "kernel argument without spaces or quotes";
}
