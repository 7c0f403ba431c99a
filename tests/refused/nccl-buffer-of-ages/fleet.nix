# A buffer of more bytes than 64 bits count.
{
  imports = [ ../../policy/hosts/spark/fleet.nix ];
  engine.env.NCCL_BUFFSIZE = "70785515671917675780";
}
