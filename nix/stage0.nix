# Stage 0: one static busybox, the first builder of everything. It is a folder, not a file, because busybox finds out
# which program to be from the name it is called by, and a flat pin would be called <hash>-busybox.
# Nothing can build before it, so a missing busybox cannot print a sentence: its builder's *path* is the sentence.
# checks/stage0.nix proves that these bytes are the ones in the pinned .deb.
{ system }:
let
  data = builtins.fromJSON (builtins.readFile ./pins/stage0.json);
  pin = builtins.head (builtins.filter (pin: pin.kind == "tree") data.pins);
in
derivation {
  inherit system;
  name = pin.file;
  builder = "/PIN.MISSING-busybox-run-sparkserve-pins-fetch-stage0";
  outputHashMode = "recursive";
  outputHashAlgo = "sha256";
  outputHash = pin.sha256;
}
