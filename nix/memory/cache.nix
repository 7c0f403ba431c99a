# Bytes of the key-value cache as SGLang 0.5.23 makes it (model_executor/pool_configurator.py), the same on every rank:
# the cache has one head, so nothing of it can be split.
{ shapes }:
let
  inherit (shapes) draft layers owners page window;
  align = a: b: (a + b - 1) / b * b;

  # 448 values in FP8, 64 in BF16 and 8 bytes of scales; a page is padded to rows of 576 bytes.
  row = ratio: align (page / ratio * 584) 576 / (page / ratio);
  # 128 values in FP4 and 4 bytes of scales.
  index = 68;
  # What a token adds, times two. The engine reserves one layer in forty more for the draft.
  twice = 2 * owners."1" * (row 1 + index) + owners."2" * (row 2 + index);
  verified = draft.tokens + 1;
in
{
  # Bytes of `count` tokens. The engine takes whole pages.
  tokens = count: count / page * page * twice * (layers + 1) / (2 * layers);

  # Slots of the window cache: what each running request may hold, two chunks in flight, and for each request four ends
  # of prefixes that later requests may go on from.
  slots = { running, chunk }:
    align (running * (window + 128 * verified + page + 2 * verified) + 2 * chunk + page
      + 4 * running * (window + page)) page;
  windows = slots: slots * row 1 * (layers + 1);

  # An open pair of tokens per request in each ratio-2 owner: 8 places, value and gate in FP32.
  pairs = running: align ((running + 1) * 8 + 9) 2 * 2 * shapes.headDim * 4 * owners."2";
}
