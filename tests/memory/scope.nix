# What the expressions of tests/host/published.py are evaluated with.
{ root }:
rec {
  lib = import (root + "/nix/lib");
  shapes = import (root + "/nix/memory/deepseek-v41.nix");
  model = import (root + "/nix/memory") { inherit lib shapes; };
  cache = import (root + "/nix/memory/cache.nix") { inherit shapes; };
  weights = tp: import (root + "/nix/memory/weights.nix") { inherit shapes tp; };

  sum = builtins.foldl' (a: b: a + b) 0;
  bytes = parts: sum (map (p: p.bytes) parts);
  target = tp: let w = weights tp; in bytes (w.experts ++ w.dense ++ w.vocabulary ++ w.vision);
  loaded = tp: target tp + bytes (weights tp).draft;
  # Of one layer.
  part = tp: name:
    let all = builtins.concatLists (builtins.attrValues (weights tp));
    in builtins.head (map (p: p.bytes / p.layers) (builtins.filter (p: p.name == name) all));

  GiB = 1073741824;
  gib = b: b / 1073741824.0;
  mib = b: b / 1048576.0;
  gb = b: b / 1.0e9;

  tuned = { channels = 8; ll128Bytes = 262144; simpleBytes = 1048576; };
  stock = { channels = 64; ll128Bytes = 4915200; simpleBytes = 4194304; };
  # What owners of three and of four ran.
  three = {
    tp = 3; head = true; context = 262144; chunk = 768; chunkedIndexer = false; kvTokens = 750000; running = 4;
    cacheGiB = 0; shmMiB = 0; pageKiB = 4; keptMiB = 0; nccl = tuned;
  };
  four = three // {
    tp = 4; context = 1048576; chunk = 4096; chunkedIndexer = true; kvTokens = 8000000; running = 16; cacheGiB = 4;
  };
  # Another engine published the bytes of its caches, not the tokens.
  otherThree = three // {
    running = 8; context = 524288; chunk = 4096; chunkedIndexer = true; kvTokens = 3758096384 / 1673;
  };
  otherFour = four // { chunk = 8192; cacheGiB = 0; kvTokens = 11274289152 / 1673; };

  term = name: given: sum (map (t: t.bytes) (builtins.filter (t: t.name == name) (model given).terms));
  # The most that a rank needs while it serves, and what it has before the first prefill.
  used = given: gib (model given).serve;
  idle = given: gib ((model given).serve - term "chunk" given - term "indexer" given);
  perToken = cache.tokens 256 / 256.0;
  # Tokens that a fraction leaves room for.
  pool = percent: given: ((model given).room percent - term "windows" given) / perToken;
}
