# A check that runs a script of ours, with the harness, on the host closure of local-single.
{ runPython, hosts, sparkserve }:
{ name, ... }@args:
runPython (args // {
  name = "check-${name}";
  interpreter = "${sparkserve}/bin";
  closure = hosts.local-single.spark-0;
})
