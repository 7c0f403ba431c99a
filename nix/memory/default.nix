# What one node of a fleet needs of its memory, as a list of terms in bytes, each with the formula in words. Pure: the
# same numbers give the same terms on every machine. docs/memory.md compares it with what owners measured.
{ lib, shapes }:
{ tp, head, context, chunk, chunkedIndexer, kvTokens, running, cacheGiB, shmMiB, pageKiB, keptMiB, nccl }:
let
  inherit (builtins) foldl' length toString;
  MiB = 1048576;
  GiB = 1024 * MiB;
  # Hundredths, because a sum of floats depends on its order.
  hundredths = n: n * GiB / 100;
  smaller = a: b: if a < b then a else b;
  sum = foldl' (a: b: a + b) 0;

  weights = lib.mapAttrs (_: parts: sum (map (p: p.bytes) parts)) (import ./weights.nix { inherit shapes tp; });
  cache = import ./cache.nix { inherit shapes; };
  slots = cache.slots { inherit running chunk; };

  # Batch sizes that SGLang captures with drafts.
  sizes = lib.unique (lib.filter (n: n <= running)
    (lib.genList (n: n + 1) 8 ++ lib.genList (n: 10 + 2 * n) 12 ++ lib.genList (n: 40 + 4 * n) 7) ++ [ running ]);

  connections = 8 * nccl.channels + 12;
  perConnection = 524288 + nccl.ll128Bytes + nccl.simpleBytes;

  scores = 14 * chunk * context;
  bounded = smaller scores (2 * GiB);

  term = name: phase: bytes: why: { inherit name phase bytes why; };
  terms = [
    (term "system" "start" (hundredths 1010)
      "DGX OS, driver and the engine's processes: a boot found 111.47 GiB of 121.7 free")
    (term "head" "start" (if head then hundredths 130 else 0) "tokenizer, HTTP and detokenizer, on rank 0 only")
    (term "pages" "start" (if pageKiB == 64 then hundredths 305 else 0)
      "page tables of the GPU, each in a page of 64 KiB (kernel.pageSizeKiB)")
    (term "services" "start" (keptMiB * MiB) "what services keep beyond the usual sshd (recovery.protect)")
    (term "nccl" "start" (connections * perConnection)
      "${toString connections} connections (8 a channel and 12) of ${toString perConnection} bytes: LL, LL128 and simple")
    (term "experts" "start" weights.experts
      "${toString shapes.layers} x ${toString shapes.experts} experts in FP4 over ${toString tp} ranks")
    (term "dense" "start" weights.dense
      "attention with heads padded for ${toString tp} ranks, shared experts, router, indexer")
    (term "vocabulary" "start" weights.vocabulary "embedding and head in BF16, by rows over the ranks")
    (term "vision" "start" weights.vision "the image tower in BF16, whole on each rank")
    (term "draft" "start" weights.draft "three DSpark layers with ${toString shapes.draft.experts} experts each")
    (term "engram" "start" (cacheGiB * GiB) "the row store's cache of the node (engram.cacheGiB)")
    (term "kv" "start" (cache.tokens kvTokens)
      "${toString kvTokens} tokens (engine.kvTokens), ${toString (kvTokens / context)} full requests; whole on each rank")
    (term "windows" "start" (cache.windows slots + cache.pairs running)
      "${toString slots} slots of the 128-token window for ${toString running} requests")
    (term "graphs" "start" (hundredths (58 + 42 * length sizes))
      "0.58 GiB and 0.42 for each of ${toString (length sizes)} batch sizes up to ${toString running}")
    (term "shm" "start" (shmMiB * MiB) "the engine's /dev/shm at its limit (engine.shmMiB)")
    (term "allocator" "serve" (hundredths 240)
      "blocks that PyTorch and the driver keep: what low-water marks of three and of four Sparks have in common")
    (term "chunk" "serve" (chunk * 768 * 1024) "0.75 MiB for each of the ${toString chunk} tokens of a prefill chunk")
    (term "indexer" "serve" (if chunkedIndexer then bounded else scores)
      ("14 bytes x ${toString chunk} tokens of a chunk x ${toString context} before them"
        + lib.optionalString chunkedIndexer ", at most 2 GiB at a time (engine.chunkedIndexer)"))
  ];
  total = phases: sum (map (t: t.bytes) (lib.filter (t: builtins.elem t.phase phases) terms));

  # What SGLang sees free before it loads, and after.
  named = name: sum (map (t: t.bytes) (lib.filter (t: t.name == name) terms));
  pool = 1217 * GiB / 10;
  before = pool - sum (map named [ "system" "head" "pages" "nccl" ]);
  loaded = sum (map named [ "experts" "dense" "vocabulary" "vision" "draft" "engram" ]);
in
{
  inherit pool;
  terms = lib.filter (t: t.bytes > 0) terms;
  start = total [ "start" ];
  serve = total [ "start" "serve" ];
  # What --mem-fraction-static leaves for the caches, and what they need. 0.1 GiB is kept for images.
  room = percent: before - loaded - (100 - percent) * before / 100 - GiB / 10;
  caches = named "kv" + named "windows";
}
