# What checks and tests run with: ruff, mypy, pytest, clients; the harness's wheels are importable, its source is not,
# so that tests see the source they are handed.
{ venv, pins }:
venv {
  name = "dev";
  pins = pins.dev.wheels;
  above = [ (venv { name = "harness"; pins = pins.harness.wheels; }) ];
}
