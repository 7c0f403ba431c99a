# An endpoint on a network, with keys that systemd decrypts: what the check of rendered files reads of it.
{
  imports = [ ../usual/fleet.nix ];
  serving.host = "10.77.0.1";
  serving.apiKeyCredential = "/etc/sparkserve/api-key.cred";
}
