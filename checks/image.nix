# Proves: the OCI export is an image to other people's programs (skopeo, umoci), and what they unpack is the engine
# root, file by file: same paths, contents, links, and execute bits. Costs: 60 s and 4 GB of disk while it runs.
{ runPython, rootfs, images, hosts, pins, source }:
runPython {
  name = "check-image";
  script = source ./image.py;
  image = images.local-image;
  layers = builtins.toJSON (map (l: { inherit (l) target; tree = "${l.tree}"; }) hosts.local-single.spark-0.layers);
  # Their programs run in a root of their own: bubblewrap, as for the engine.
  judges = rootfs {
    name = "oci-judges";
    debs = pins.base.debs ++ pins.oci.debs;
    mountpoints = [ "/image" "/unpacked" ];
  };
}
