# A path that brings a command of root's.
{
  imports = [ ../../policy/hosts/usual/fleet.nix ];
  serving.apiKeyCredential = "/etc/k\nExecStartPre=/bin/sh";
}
