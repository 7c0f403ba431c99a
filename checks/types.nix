# Proves: mypy --strict accepts the harness and its tests. Costs: 30 s without a cache.
{ devCheck }:
devCheck {
  name = "types";
  folders = [ "src" "tests" ];
  commands = [ [ "mypy" "--no-incremental" ] ];
}
