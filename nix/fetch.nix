# The seam: a pin is a fixed-output path that `sparkserve pins fetch` has put into the store. Nix finds it by name and
# hash and never runs this builder; when the pin is missing, the builder's only job is to say so.
# `list` is the profile that has the pin.
{ system, stage0 }:
list: pin:
derivation {
  inherit system;
  name = pin.file;
  builder = "${stage0}/busybox";
  args = [ "sh" "-c" ''echo "PIN.MISSING | $name in the store | nothing | /nix/store | Run ./sparkserve pins fetch ${list}." >&2; exit 1'' ];
  outputHashMode = "flat";
  outputHashAlgo = "sha256";
  outputHash = pin.sha256;
}
