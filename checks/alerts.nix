# Proves: each alert of docs/monitoring fires on series that are what it is for, and not on others close to them; each
# expression of the dashboard is one that Prometheus reads; and promtool refuses a mistake in either. Costs: 5 s.
{ runPython, rootfs, tools, pins, source }:
let
  # One program of it is called, with the loader and the libraries of the tools.
  prometheus = rootfs { name = "prometheus"; script = ./promtool.sh; inherit (pins.monitoring) debs; };
in
runPython {
  name = "check-alerts";
  script = source ./alerts.py;
  promtool = "${prometheus}/usr/bin/promtool";
  libraries = "${tools}/usr/lib/x86_64-linux-gnu";
  monitoring = source ../docs/monitoring;
  tests = source ../tests/monitoring;
}
