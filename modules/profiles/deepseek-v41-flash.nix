# DeepSeek-V4.1-Flash on three or more DGX Sparks (GB10, SM121). Arguments and values are those that owners of three and
# of four published; sources and what each was measured with: docs/memory.md. Nothing here ran on a Spark of ours.
{
  package = "engine-gb10";
  model = "deepseek-v41-flash";
  engram = true;
  nccl = "stock";
  accelerator = "gb10";
  shapes = import ../../nix/memory/deepseek-v41.nix;

  # A rank's part of an expert, of 2304, is a multiple of 64 for the kernels of b12x, and of 128 for others. Two Sparks are
  # too small; five and seven get no whole part; six get 384, which nobody published; on eight and more a part of 288
  # or less needs experts that are not split, which these arguments do not ask for.
  ranks = [ 3 4 ];

  # A node has one GPU: no ranks meet here.
  shmMiB = 512;

  sizes = ranks: {
    # Three nodes: owners ran 768 x 262144 under a guard of 1.5 GB, and that is what the head then has left. Under ours of
    # 3 GiB it is a third of the product. 256 x 262144 fits too; smaller chunks are slower.
    context = if ranks <= 3 then 131072 else 1048576;
    prefillChunk = if ranks <= 3 then 512 else 4096;
    chunkedIndexer = ranks > 3;
    kvTokens = if ranks <= 3 then 750000 else 8000000;
    maxRunning = if ranks <= 3 then 4 else 16;
    staticPercent = if ranks <= 3 then 95 else 84;
  };

  args = [
    "--trust-remote-code"
    "--attention-backend" "dsv4"
    # It takes experts whose part on a rank is a multiple of 128 wide: 768 on three. The 576 on four it refuses, and need
    # the kernels of b12x, which engine-gb10 will have.
    "--moe-runner-backend" "flashinfer_mxfp4"
    # Else dense layers run on the Triton block kernel, four times slower.
    "--fp8-gemm-backend" "flashinfer_cutlass"
    "--speculative-algorithm" "DSPARK"
    # Decoder layers of a prefill run over the last 128 tokens only.
    "--enable-decoder-swa-bounded-replay"
    "--tool-call-parser" "deepseekv41"
    "--reasoning-parser" "deepseek-v41"
    "--random-seed" "0"
    "--watchdog-timeout" "1800"
    # An idle engine takes 14 % of the CPU with it, 47 % without.
    "--sleep-on-idle"
    # Without it the sixteenth request waits for four to end: 164 tokens a second, 226 with it.
    "--min-free-slots-delay" "1"
    "--enable-cache-report"
    "--skip-server-warmup"
  ];

  env = {
    # True gave NaN for prefills of more than 64 tokens.
    PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:False";
    CUDA_DEVICE_ORDER = "PCI_BUS_ID";
    # The row store reads Engram's tables; SGLang's own needs 189 GiB.
    SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE = "0";
    # The fused one adds with atomics, and equal requests then get different answers.
    SGLANG_FLASHINFER_MOE_FUSED_FINALIZE = "0";
    # The publisher's default. SGLang's is 50.
    SGLANG_DSV41_REASONING_EFFORT = "75";
  };

  # Not batch-invariance, as sums of this engine depend on the batch. kld needs evidence of a reference: --against.
  gates = [ "smoke" "determinism" "prefix" "tscan" "needle" "structured" "nan" "lru" "tools" "qeval" "kld" ];

  group = {
    adapters = { };
    args = [ "--disable-custom-all-reduce" ];
    env = { };
  };
}
