# Proves: every file and unit that a fleet of hosts/ or tests/policy/hosts renders for DGX OS is read without a complaint,
# and to the effect that was meant, by the program that reads it on a node, as Debian 12 has it; and each of these programs
# refuses a file with a mistake in it. Costs: 20 s.
{ runPython, rootfs, tools, pins, source, fleets, lib }:
let
  tried = import ../nix/fleet.nix { inherit lib; hosts = ../tests/policy/hosts; modules = ../modules; };
  plansOf = lib.mapAttrs (_: fleet: fleet.plans);
  all = plansOf fleets // plansOf tried;
in
runPython {
  name = "check-rendered";
  script = "${source ./rendered}/check.py";
  plans = builtins.toFile "plans.json" (builtins.toJSON all);
  bwrap = "${tools}/usr/bin/bwrap";
  # The readers run in a root of their own, with the node's /etc in place of its own.
  root = rootfs {
    name = "readers";
    debs = pins.base.debs ++ pins.node.debs ++ pins.readers.debs;
    mountpoints = [ "/boot" "/closure" "/srv" ];
  };
}
