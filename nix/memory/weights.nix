# Bytes of weights that one of `tp` ranks holds, part by part, from the model's shapes. A part that is not split is on
# every rank. Two forms of our engine differ from the checkpoint: scales of FP8 matrices are one byte for 32 values of a
# row, as the MXFP8 kernels read them, and wo_a is BF16 (SGLang 0.5.23 converts it at load).
{ shapes, tp }:
let
  inherit (shapes) draft engram expertWidth experts headDim hidden indexDim indexHeads indexLayers layers mixes;
  inherit (shapes) outputRank owners queryRank streams vision vocab;

  ceil = a: b: (a + b - 1) / b;
  align = a: b: ceil a b * b;
  # Bytes of 32 values, with their scale.
  of32 = { fp4 = 17; fp8 = 33; bf16 = 64; fp32 = 128; };

  # Heads come in groups that no two ranks share, and a rank needs a number of heads that the kernels know.
  perGroup = shapes.heads / shapes.groups;
  pad = groups: if builtins.elem (groups / tp * perGroup) shapes.localHeads then groups else pad (groups + tp);
  groups = pad (align shapes.groups tp) / tp;
  # SGLang pads the vocabulary to 64 rows, and to whole rows for each rank.
  rows = align vocab (64 * tp) / tp;

  part = name: layers: format: values: {
    inherit name layers format;
    bytes = ceil (values * layers * of32.${format}) 32;
  };
  expert = 3 * hidden * expertWidth;
  attention = layers: [
    (part "wqkv_a" layers "fp8" ((queryRank + headDim) * hidden))
    (part "wq_b" layers "fp8" (groups * perGroup * headDim * queryRank))
    (part "wo_a" layers "bf16" (groups * outputRank * perGroup * headDim))
    (part "wo_b" layers "fp8" (hidden * groups * outputRank))
    (part "shared expert" layers "fp8" (ceil expert tp))
    (part "hyper-connections" layers "fp32" (2 * mixes * streams * hidden))
  ];
in
{
  experts = [ (part "routed experts" layers "fp4" (ceil (experts * expert) tp)) ];
  dense = attention layers ++ [
    (part "router" layers "bf16" (experts * hidden))
    (part "indexer queries" indexLayers "fp8" (indexHeads * indexDim * queryRank))
    (part "indexer heads" indexLayers "bf16" (indexHeads * hidden))
    (part "indexer keys" (owners."1" + owners."2") "bf16" (indexDim * headDim))
    # Ratio 2 has a value and a gate.
    (part "compressors" (owners."1" + 2 * owners."2") "bf16" (headDim * hidden))
    (part "engram projection" engram.layers "fp8" ((streams + 1) * hidden * engram.columns))
  ];
  vocabulary = [ (part "embedding and head" 2 "bf16" (rows * hidden)) ];
  vision = [
    (part "vision layers" vision.layers "bf16" (4 * vision.dim * vision.dim + 3 * vision.dim * vision.width))
    (part "vision aligner" 1 "bf16" (hidden * (vision.aligner + hidden) + vision.dim * vision.patch))
  ];
  draft = map (p: p // { name = "draft ${p.name}"; }) (attention draft.layers ++ [
    (part "experts" draft.layers "fp4" (align draft.experts tp / tp * expert))
    (part "router" draft.layers "bf16" (draft.experts * hidden))
    (part "projection" 1 "fp8" (hidden * draft.inputs * hidden))
    # One half is split like the embedding; the other is whole on each rank, and a part of it is used.
    (part "markov head" 1 "bf16" ((rows + vocab) * draft.markov))
  ]);
}
