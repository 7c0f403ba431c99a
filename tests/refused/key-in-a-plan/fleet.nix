# Keys whose text the fleet gives: in the plan, the closure and the store.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.apiKeyFile = "/etc/sparkserve/api-key";
  host.files."/etc/sparkserve/api-key".text = "a-key-of-sixteen-letters";
}
