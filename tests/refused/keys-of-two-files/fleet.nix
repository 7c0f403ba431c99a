# Two places for the keys.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.apiKeyFile = "/etc/sparkserve/api-key";
  serving.apiKeyCredential = "/etc/sparkserve/api-key.cred";
}
