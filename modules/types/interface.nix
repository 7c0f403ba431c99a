# A network interface. The kernel refuses longer names.
lib:
lib.types.strMatching "[A-Za-z0-9_.-]{1,15}" // { description = "name of a network interface, such as enP7s7"; }
