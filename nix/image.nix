# OCI export of an engine root: for people who want a container. The run path never uses it.
#   architecture   as OCI calls it       proof   what has to be built first, or null
{ runPython, source }:
{ name, layers, argv, args, env, architecture ? "amd64", proof ? null }:
runPython {
  inherit name proof;
  script = "${source ./oci}/image.py";
  spec = builtins.toJSON {
    inherit architecture;
    layers = map (l: { inherit (l) target; tree = "${l.tree}"; digest = "${l.digest}"; }) layers;
    config = {
      Entrypoint = argv;
      Cmd = args;
      Env = map (key: "${key}=${env.${key}}") (builtins.attrNames env);
      WorkingDir = "/";
    };
  };
}
