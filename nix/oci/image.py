"""Builder of an OCI image layout (image specification 1.1).

in (environment): spec (JSON: layers of {tree, target, digest}, config). out: a folder for `skopeo inspect
oci:FOLDER`. No creation time anywhere: the manifest's digest names content only.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from canonical_tar import CHUNK, write

out = Path(os.environ["out"])
spec = json.loads(os.environ["spec"])
blobs = out / "blobs/sha256"
blobs.mkdir(parents=True)


def add_json(value, kind: str) -> dict[str, object]:
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    media_type = f"application/vnd.oci.image.{kind}.v1+json"
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def add_layer(layer) -> dict[str, object]:
    digest = Path(layer["digest"]).read_text()
    sha256 = hashlib.sha256()
    with (blobs / digest).open("wb", buffering=CHUNK) as file:

        def sink(data: bytes) -> None:
            sha256.update(data)
            file.write(data)

        write(Path(layer["tree"]), layer["target"], sink)
        size = file.tell()
    if sha256.hexdigest() != digest:
        sys.exit(f"{layer['tree']}: the closure says sha256:{digest}, its tar is sha256:{sha256.hexdigest()}")
    return {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{digest}", "size": size}


layers = [add_layer(layer) for layer in spec["layers"]]
diff_ids = [layer["digest"] for layer in layers]
config = add_json(
    {
        "architecture": spec["architecture"],
        "os": "linux",
        "config": spec["config"],
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    },
    "config",
)
manifest = add_json(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": layers,
    },
    "manifest",
)
manifest["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
(out / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}, sort_keys=True))
(out / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
