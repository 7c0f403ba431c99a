# A node that is short of memory answers slowly, and everybody tries again: sshd must not be full of half-open logins.
{ lib, config, ... }:
let
  text = ''
    # 120 s by default: a login that hangs keeps its place for so long.
    LoginGraceTime 30
    # From 64 on, 30 % of new ones are turned away, and all from 128 on.
    MaxStartups 64:30:128
    # One client that tries without rest leaves room for another.
    PerSourceMaxStartups 32
  '';
in
{
  # Of several values of LoginGraceTime sshd takes the first, of the other two the last. A file of cloud-init has 50.
  config.host.files = lib.mkIf (config.host.platform == "dgx-os") {
    "/etc/ssh/sshd_config.d/00-sparkserve.conf" = { inherit text; };
    "/etc/ssh/sshd_config.d/zz-sparkserve.conf" = { inherit text; };
  };
}
