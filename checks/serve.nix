# Proves: inside the build sandbox, with no network, SGLang starts from the host closure by the one run path and answers
# the smoke question right. Costs: 20 s once the closure is built.
{ engineCheck }:
engineCheck {
  name = "serve";
  # The serving socket is real but private: a sandbox has a loopback of its own.
  script = builtins.toFile "check.py" ''
    import os, pathlib, subprocess, sys
    result = subprocess.run([sys.executable, "-m", "sparkserve.engine", os.environ["closure"]], stdout=subprocess.PIPE)
    if result.returncode:
        sys.exit(result.returncode)
    sys.stderr.write(result.stdout.decode())
    pathlib.Path(os.environ["out"]).touch()
  '';
}
