# The plan of a node, from its evaluated modules. Schema: src/sparkserve/plan.py.
{ lib, config }:
let
  inherit (config) engine engram fabric fleet group guard host kernel metrics node serving;
  inherit (import ./rails.nix { inherit lib config; }) links;
  single = fleet.topology == "single";
  model = import ./memory/node.nix { inherit lib config; };
  ranked = lib.imap0 (rank: node: { inherit (node) name address; inherit rank; }) fleet.nodes;
in
{
  schema = "sparkserve.plan/1";
  fleet = { inherit (fleet) name topology; nodes = ranked; };
  node = { inherit (node) name rank; };
  serving = {
    inherit (serving) model host port;
    # The other is where systemd puts a credential of the unit (modules/group-units.nix).
    api_key_file =
      if serving.apiKeyCredential == null then serving.apiKeyFile else "/run/credentials/sparkserve-front.service/api-key";
    ready_timeout_s = serving.readyTimeoutS;
  };
  engine = {
    inherit (engine) package model env;
    args = [ "--model-path" "/model" "--served-model-name" serving.model ]
      ++ import ./memory/arguments.nix { inherit lib config; }
      ++ lib.optional metrics.engine "--enable-metrics"
      ++ engine.args
      # Of a group, the front has the public port, and the supervisors tell the engines where to listen.
      ++ lib.optionals single [ "--host" serving.host "--port" (toString serving.port) ];
    inherit (serving) devices;
    # A CPU engine needs no path of the machine.
    binds = [ ];
    shm_mib = engine.shmMiB;
  };
  # A node alone has no network of its own.
  fabric = if single then null else {
    management = { interface = fabric.managementInterface; inherit (node) address; prefix = fabric.managementPrefix; };
    inherit (fabric) mtu nccl;
    links = links node.rank;
  };
  adapters = lib.mapAttrsToList
    (name: adapter: { inherit name; inherit (adapter) settings; })
    (lib.filterAttrs (_: adapter: adapter.enable) config.adapters);
  group = if single then null else {
    size = lib.length fleet.nodes;
    control_port = group.controlPort;
    rendezvous_ports = [ group.rendezvousPort (group.rendezvousPort + 99) ];
    engine_port = group.enginePort;
    start_limit = group.startLimit;
    start_window_s = group.startWindowS;
    canary_s = group.canaryS;
    lost_s = group.lostS;
  };
  engram = if !engram.enable then null else {
    inherit (engram) directory;
    cache_gib = engram.cacheGiB;
    io_threads = engram.ioThreads;
  };
  guard =
    let
      level = l: { floor_mib = l.floorMiB; line_mib = l.lineMiB; interval_ms = l.intervalMs; };
    in
    if !guard.enable then null else {
      startup = level guard.startup;
      steady = level guard.steady;
      rate_mib_s = guard.rateMiBs;
      closest_ms = guard.closestMs;
      kill_ms = guard.killMs;
    };
  metrics = if single then null else { inherit (metrics) port; };
  gates = config.gates;
  # What the node's memory is planned for; null for a model that has no shapes, as nobody counts a laptop's memory.
  memory = if model == null then null else {
    pool_bytes = model.pool;
    inherit (model) terms;
    start_bytes = model.start;
    serve_bytes = model.serve;
    start_line_bytes = model.lines.start;
    serve_line_bytes = model.lines.serve;
  };
  # A model without shapes is small, and in the closure.
  weights = if model == null then null else { inherit (config.weights) path source; };
  host = {
    inherit (host) files units mask sysctls;
    default_target = host.defaultTarget;
    kernel_args = host.kernelArgs;
    kernel = if host.platform == "none" then null else {
      inherit (kernel) release driver;
      page_size = kernel.pageSizeKiB * 1024;
    };
  };
}
