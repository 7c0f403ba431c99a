# Wheels unpacked into one folder, verified against their own RECORD, with byte code made from hashes, not times.
#   libDir     where modules go under $out        drop     globs of files never written
#   dropFrom   such globs, by the name of the one wheel that they are for
#   links      link -> where it points, both in libDir, made last
#   strip      ELF files cut after their last segment (debug info goes)
#   patches    unified diffs, each opening with its reason
#   broken     modules that do not compile, and need not
#   prefix     where the folder stands at run time, for the paths in byte code
#   loader     ELF loader of the root that runs them from the store; null where they run inside a root
{ runPython, source, stage0 }:
{ name, wheels, libDir ? "lib", drop ? [ ], dropFrom ? { }, links ? { }, strip ? [ ], patches ? [ ], broken ? [ ], prefix, loader ? null }:
runPython {
  inherit name libDir prefix;
  script = source ./wheels.py;
  busybox = "${stage0}/busybox";
  wheels = builtins.toJSON (map (wheel: { inherit (wheel) name file path; }) wheels);
  drop = builtins.toJSON drop;
  dropFrom = builtins.toJSON dropFrom;
  links = builtins.toJSON links;
  strip = builtins.toJSON strip;
  broken = builtins.toJSON broken;
  patches = map source patches;
  loader = if loader == null then "" else loader;
}
