# The adapters alone of the harness, for every engine root: an edit elsewhere in src/ leaves the roots as they are.
{ layer, source }:
layer {
  name = "adapters";
  target = "/opt/adapters/sparkserve/adapters";
  tree = source ../src/sparkserve/adapters;
}
