# Proves: the memory guard of the closures, over memory that is made up and processes that are real, kills before the floor
# for traces up to its stated rate, and when it cannot read memory, and else never; its loop takes no memory; and what is
# compiled once more, into another path, is the same bytes. Costs: two minutes once it is built.
{ devCheck, guard, cc }:
devCheck {
  name = "guard";
  folders = [ "src" "tests" ];
  path = [ "${guard}/bin" "${cc { name = "guard"; folder = ../pkgs/guard/src; again = true; }}/bin" ];
  commands = [ [ "pytest" "-q" "-p" "no:cacheprovider" "tests/guard" ] ];
}
