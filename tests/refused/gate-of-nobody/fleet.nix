# A gate that no file of src/sparkserve/gates/kinds is.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  gates = [ "smoke" "mind-reading" ];
}
