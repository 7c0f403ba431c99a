# A program of ours in C: every .c file of `folder`, compiled by the pinned compiler, linked statically: bin/<name>.
# The same bytes from any builder: no path of the build and no date is in them. `again` builds it once more, into another
# store path, for checks/guard.nix to compare.
{ rootfs, runPython, source, tools, pins }:
let
  root = rootfs { name = "cc-root"; debs = pins.base.debs ++ pins.cc.debs; };
  library = "usr/lib/gcc/x86_64-linux-gnu/12";
  # gcc runs the others as files of their own, so that each needs this root's loader set in it.
  programs = runPython {
    name = "cc";
    script = source ../pkgs/node-tools/build.py;
    patchelf = "${tools}/usr/bin/patchelf";
    inherit root;
    programs = [ "usr/bin/gcc-12" "usr/bin/as" "usr/bin/ld" "${library}/cc1" "${library}/collect2" ];
  };
in
{ name, folder, again ? false }:
runPython {
  inherit name root programs again;
  library = "${root}/${library}";
  script = source ./cc.py;
  folder = source folder;
}
