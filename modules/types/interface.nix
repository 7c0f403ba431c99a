# A network interface, of `letters` and dashes. The kernel refuses longer names; "all" and "default" are every interface
# to its sysctls, "lo" is every node's own, and a dash in front is an option to most programs.
lib: letters:
let
  name = lib.types.strMatching "[A-Za-z0-9_][${letters}-]{0,14}";
in
lib.types.addCheck name (value: !builtins.elem value [ "lo" "all" "default" ]) // {
  description = "name of a network interface of hardware, such as enP7s7";
}
