"""Images as files: OCI image layouts (image specification 1.1), and the layers of a host closure."""
