# A /dev/shm of 64 GiB, which switched a node off.
{
  fleet.nodes = [ { name = "spark-0"; address = "127.0.0.1"; } ];
  serving.model = "smollm2-135m";
  host.platform = "dgx-os";
  engine.shmMiB = 65536;
}
