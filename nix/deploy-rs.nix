# The flake output `deploy`, which deploy-rs reads: every node of every fleet with several, as <fleet>_<node>, a name that
# needs no quotes in a shell and no other pair has. docs/deploy-rs.md: what deploy-rs does with it.
{ lib, fleets, hosts }:
let
  inherit (import ./throw.nix) fail;

  node = fleet: { name, address, ... }: lib.nameValuePair "${fleet}_${name}" {
    hostname = address;
    profiles.sparkserve = {
      path = "${hosts.${fleet}.${name}}";
      profilePath = "/nix/var/nix/profiles/sparkserve";
    };
  };

  nodes = fleet: plans:
    let known = (lib.head (lib.attrValues plans)).fleet.nodes;
    in lib.optionals (lib.length known > 1) (map (node fleet) known);

  # A broken fleet is one entry, with its error: it hides no node of another fleet.
  named = fleet: { plans, ... }:
    if (builtins.tryEval (lib.attrNames plans)).success then nodes fleet plans else [ (lib.nameValuePair fleet plans) ];
in
{
  sshUser = "root";
  # The same: no sudo, which on DGX OS has a PATH without Nix.
  user = "root";
  # As src/sparkserve/commands.py has them for its own connections.
  sshOpts = lib.concatMap (option: [ "-o" option ])
    [ "LogLevel=INFO" "RemoteCommand=none" "BatchMode=yes" "ConnectTimeout=5" "ServerAliveInterval=2" "ServerAliveCountMax=3" ];
  # Nodes have what is copied to them, and ask no cache.
  fastConnection = true;

  autoRollback = true;
  magicRollback = true;
  # An activation takes seconds, as it loads no model. commands.py waits 180 s for one.
  activationTimeout = 240;
  # A node whose cores are busy takes seconds to let a session in.
  confirmTimeout = 60;
  # Only root can lay a file there, and a power cut leaves none.
  tempPath = "/run/sparkserve";

  nodes = lib.listToAttrs (builtins.concatLists (lib.mapAttrsToList named fleets)) // {
    # `deploy .` would take the nodes of all fleets, in another order each time.
    _all = fail "CLI.USAGE" {
      expected = "nodes of one fleet by name, workers first";
      found = "all nodes of all fleets";
      where = "deploy.nodes";
      way = "deploy -s --targets .#local-triangle_spark-1 .#local-triangle_spark-2 .#local-triangle_spark-0";
    };
  };
}
