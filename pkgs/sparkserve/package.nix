# The harness: src/ over its wheels. An edit of src/ rebuilds only this, in seconds.
{ venv, source, pins }:
venv {
  name = "sparkserve";
  pins = [ ];
  above = [ (venv { name = "harness"; pins = pins.harness.wheels; }) ];
  sources = source ../../src;
  program = "sparkserve.cli.main:main";
}
