"""The scripted engine: an OpenAI-compatible stub that misbehaves on command, in measured strength.

`with scripted.serve(scripted.Script(garble=(3, 100))) as endpoint:` runs one in a thread on a loopback port.
By hand: `PYTHONPATH=tests python -m scripted --port 9000 --garble 3/100`.
"""

from scripted.script import Script
from scripted.server import serve

__all__ = ["Script", "serve"]
