# A layer: a folder of the engine root, where it is mounted, and the digest of its canonical tar (its diff_id).
# The digest is computed without keeping the tar: a start needs the number, only an image export needs the bytes.
{ runPython, source }:
{ name, target, tree }:
{
  inherit name target tree;
  digest = runPython {
    name = "${name}-digest";
    script = "${source ./oci}/digest.py";
    inherit tree target;
  };
}
