#!/bin/bash
# Runs inside a bare machine for measure.py; prints one JSON record a line, everything else goes to stderr.
set -euo pipefail
export SPARKSERVE_FLEET=$1
exec 3>&1 1>&2
record() { tr -d '\n' >&3 && echo >&3; }
timed() { # COMMAND...: its seconds in $seconds
  local begin=$EPOCHREALTIME
  "$@"
  seconds=$(awk "BEGIN { print $EPOCHREALTIME - $begin }")
}
up() { ./sparkserve up --json >up.json; }

timed up
echo "{\"kind\": \"first\", \"seconds\": $seconds, \"up\": $(<up.json)}" | record
./sparkserve down
timed up
smoke=$(./sparkserve smoke --json)
# After a first answer, a long one: 128 tokens of a text that does not end before.
decode=$(/usr/bin/python3 - <<'EOF'
import json, time, urllib.request
body = {"model": "smollm2-135m", "max_tokens": 128, "ignore_eos": True, "temperature": 0,
        "messages": [{"role": "user", "content": "Tell me a long story about a lighthouse."}]}
request = urllib.request.Request("http://127.0.0.1:8888/v1/chat/completions", json.dumps(body).encode(),
                                 {"Content-Type": "application/json"})
begin = time.monotonic()
answer = json.load(urllib.request.urlopen(request))
print(json.dumps({"tokens": answer["usage"]["completion_tokens"], "seconds": time.monotonic() - begin}))
EOF
)
status=$(./sparkserve status --json)
echo "{\"kind\": \"again\", \"seconds\": $seconds, \"up\": $(<up.json), \"smoke\": $smoke, \"decode\": $decode,
  \"status\": $status}" | record
./sparkserve down
closure=$(./sparkserve nix eval --raw ".#hosts.$SPARKSERVE_FLEET.spark-0.outPath")
echo "{\"kind\": \"size\", \"store_bytes\": $(du -sb /nix/store | cut -f1),
  \"closure_bytes\": $(./sparkserve nix path-info -S "$closure" | awk '{ print $2 }')}" | record
