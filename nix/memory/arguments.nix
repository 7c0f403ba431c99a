# SGLang's arguments for the options of modules/memory-model.nix.
{ lib, config }:
let
  inherit (config) engine;
  profile = import (../../modules/profiles + "/${config.serving.model}.nix");
  percent = toString engine.staticPercent;
  given = option: value: lib.optionals (value != null) [ option (toString value) ];
in
given "--context-length" engine.context
++ given "--chunked-prefill-size" engine.prefillChunk
++ [
  "--max-total-tokens" (toString engine.kvTokens)
  "--max-running-requests" (toString engine.maxRunning)
  "--mem-fraction-static" "0.${lib.optionalString (engine.staticPercent < 10) "0"}${percent}"
]
# A CPU has no graphs, and its model no drafts.
++ lib.optionals (profile ? shapes) [
  "--cuda-graph-max-bs-decode" (toString engine.maxRunning)
  "--speculative-dspark-block-size" (toString profile.shapes.draft.tokens)
]
