# A /dev/shm of so many MiB that its bytes, in 64 bits, are none.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  engine.shmMiB = 17592186044416;
}
