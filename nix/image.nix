# OCI export of an engine root: for people who want a container. The run path never uses it.
{ runPython, source }:
{ name, layers, argv, args, env }:
runPython {
  inherit name;
  script = "${source ./oci}/image.py";
  spec = builtins.toJSON {
    architecture = "amd64";
    layers = map (l: { inherit (l) target; tree = "${l.tree}"; digest = "${l.digest}"; }) layers;
    config = {
      Entrypoint = argv;
      Cmd = args;
      Env = map (key: "${key}=${env.${key}}") (builtins.attrNames env);
      WorkingDir = "/";
    };
  };
}
