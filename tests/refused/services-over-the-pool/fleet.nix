# Services that keep more than the engine leaves.
{
  imports = [ ../../policy/hosts/spark/fleet.nix ];
  recovery.protect = builtins.listToAttrs
    (builtins.genList (n: { name = "s${toString n}.service"; value = 1024; }) 110) // { "ssh.service" = 128; };
}
