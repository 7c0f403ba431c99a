# SmolLM2-135M-Instruct on a CPU: the model of a machine without an accelerator.
# Figures: one node, two x86_64 cores, SGLang 0.5.23 with torch 2.13.0.
{
  package = "engine-cpu";
  model = "demo-model";

  shmMiB = 1024;

  sizes = _: {
    context = null;
    prefillChunk = null;
    chunkedIndexer = false;
    # The key-value cache holds one request of the model's full context; with less, SGLang starts and then refuses or
    # cuts long requests. 30 layers x 2 x 3 heads x 64 x 4 bytes = 45 KiB a token, so 360 MiB.
    kvTokens = 8192;
    maxRunning = 4;
    # The cache takes kvTokens, far less than this. SGLang counts against it all memory that goes while it starts, whoever takes
    # it: at 10, other work that took 3 of 20 GB meanwhile ended a start ("leave no GPU memory for the KV cache").
    staticPercent = 50;
  };

  args = [
    "--device" "cpu"
    # The other attention and sampling kernels are for accelerators, or need AMX.
    "--attention-backend" "torch_native"
    "--sampling-backend" "pytorch"
    # JSON-schema answers.
    "--grammar-backend" "xgrammar"
    # JSON may have blank lines between its parts, and this model fills every answer with them up to the limit.
    "--constrained-json-disable-any-whitespace"
    # bfloat16 is slow without AMX: three ranks on these cores made 0.45 tokens a second, and 1.7 in float32.
    "--dtype" "float32"
    # Answers say how much of the prompt was in the prefix cache, which the gate prefix asks about.
    "--enable-cache-report"
    # Readiness is a real request of the launcher's own; SGLang's would be a second one.
    "--skip-server-warmup"
    # Without it an idle engine looks for work without rest: 0.85 cores on one node; on three a whole core, and 650 kB
    # a second of gloo on the management network. With it three take 0.04 cores and 1 kB.
    "--sleep-on-idle"
  ];

  env = {
    SGLANG_USE_CPU_ENGINE = "1";
    # One thread per core, and no spinning: three processes share two cores.
    OMP_NUM_THREADS = "2";
    OMP_WAIT_POLICY = "PASSIVE";
  };

  # Nodes of a laptop all see the machine's memory: the floors are for what else runs there.
  guard = { startupMiB = 1024; steadyMiB = 768; };

  # needle is not among them: of planted sentences it finds three in four.
  gates = [ "smoke" "determinism" "prefix" "tscan" "structured" "nan" "lru" ];

  # What changes when several nodes are one engine.
  group = {
    # Nodes of a laptop share its cores: a rank that stays on one loses less to whatever else runs there.
    adapters.oneshot-collectives.pin = 1;

    args = [
      # It is for accelerators that see each other's memory; asked for, it only logs that it cannot.
      "--disable-custom-all-reduce"
    ];

    env = {
      # A second thread per rank only waits for the core of another rank: 5.9 tokens a second; 6.9 with one.
      OMP_NUM_THREADS = "1";
      # The embedding of a split vocabulary is compiled at its first use; the root has no compiler.
      TORCHDYNAMO_DISABLE = "1";
      # One entry per rank, else SGLang refuses more ranks than NUMA nodes. It binds nothing without AMX kernels.
      SGLANG_CPU_OMP_THREADS_BIND = "0|0|0|0";
    };
  };
}
