# Proves: the busybox that builds everything is, byte for byte, the one in the pinned Debian package.
# Costs: a second.
{ runPython, stage0, pins }:
let
  deb = builtins.head (builtins.filter (pin: pin.name == "busybox-static") pins.stage0.debs);
in
runPython {
  name = "check-stage0";
  busybox = "${stage0}/busybox";
  deb = deb.path;
  script = builtins.toFile "check.py" ''
    import os, pathlib, subprocess, sys
    busybox, out = os.environ["busybox"], os.environ["out"]
    subprocess.run([busybox, "ar", "x", os.environ["deb"]], check=True)
    subprocess.run([busybox, "tar", "-xJf", "data.tar.xz"], check=True)
    [packaged] = [p for p in map(pathlib.Path, ("bin/busybox", "usr/bin/busybox")) if p.exists()]
    if packaged.read_bytes() != pathlib.Path(busybox).read_bytes():
        sys.exit("stage 0 is not the busybox of its package")
    pathlib.Path(out).touch()
  '';
}
