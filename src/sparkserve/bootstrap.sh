# shellcheck shell=bash
# What ./sparkserve does when something is to do: packages, bootstrap environment, pins, harness closure.
# Sourced by it; uses its checkout, state, harness, stale and fail. What is interrupted is done again
# by the next start: results are made aside and moved, or are idempotent.
# shellcheck disable=SC2154
log=$state/start.log
child=
tick=
# The profiles whose pins the harness is built from; sparkserve.pins has the same list.
builder=(stage0 base tools harness)

alone() { # COMMAND...: run it while no other ./sparkserve of this checkout does; a second start waits here
  trap 'interrupted INT' INT
  trap 'interrupted TERM' TERM HUP
  if ! { mkdir -p "$state" && exec 9>"$state/lock"; } 2>/dev/null; then
    fail HOST.DISK "a writable checkout" "that nothing can be written" "$state" "Free or remount the disk."
  fi
  if ! flock -n 9; then
    echo "Another ./sparkserve is preparing this checkout; waiting for it ..." >&2
    job flock 9
  fi
  : >"$log"
  "$@"
  # The harness must not inherit the lock: it would hold it for as long as a server runs.
  exec 9>&-
  trap - INT TERM HUP
}

interrupted() { # SIGNAL: passed on as it came, as a start in a script's background has SIGINT ignored
  trap '' INT TERM HUP
  # The ticker may be gone: a closing terminal signals it too.
  if [[ $tick ]]; then kill "$tick" 2>/dev/null || true; fi
  if [[ $child ]]; then
    kill "-$1" -- "-$child" 2>/dev/null || true
    wait "$child" || true
  fi
  printf '\nInterrupted. The next start goes on from here.\n' >&2
  exit 130
}

job() { # COMMAND...: in its own process group, so that a signal to this script alone ends all of it
  local code=0
  set -m
  "$@" </dev/null &
  child=$!
  set +m
  wait "$child" || code=$?
  child=
  return "$code"
}

logged() { "$@" >>"$log" 2>&1 9>&-; }

ticker() { # TEXT: the seconds so far and the log's last line, for a terminal
  while sleep 1; do
    printf '\r\033[K%s ... %d s  %.60s' "$1" "$SECONDS" "$(tail -n 1 "$log" | tr -cd '[:print:]')" >&2
  done
}

step() { # TEXT COMMAND...: one visible line; what the command prints goes to the log
  local text=$1 code=0
  shift
  SECONDS=0
  printf '%s ... ' "$text" >&2
  if [[ -t 2 ]]; then
    ticker "$text" 9>&- &
    tick=$!
  fi
  job logged "$@" || code=$?
  if [[ $tick ]]; then
    kill "$tick" 2>/dev/null || true
    wait "$tick" 2>/dev/null || true
    tick=
    printf '\r\033[K%s ... ' "$text" >&2
  fi
  if [[ $code == 0 ]]; then
    echo "$SECONDS s" >&2
    return 0
  fi
  echo failed >&2
  clean_up_and_blame_full_disk
  return "$code"
}

clean_up_and_blame_full_disk() {
  local full
  # A log on the full disk may be empty, so free space counts too.
  full=$(df -k --output=avail,target "$state" /nix /var/cache "${TMPDIR:-/tmp}" 2>/dev/null |
    awk 'NR > 1 && $1 < 1024 { print $2; exit }')
  rm -rf "$state/venv.new"
  if [[ $full ]] || grep -qE 'No space left on device|disk is full|enough free space' "$log"; then
    fail HOST.DISK "free space for packages and builds" "a full disk" "${full:-$log}" \
      "Free some space (./sparkserve nix store gc removes what nothing uses) and run the same command."
  fi
}

install_missing() {
  local missing=() package
  command -v nix >/dev/null || missing+=(nix-bin)
  command -v git >/dev/null || missing+=(git)
  # Not the first python3 in PATH: a version manager may have put its own there.
  /usr/bin/python3 -I -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  [[ -s /etc/ssl/certs/ca-certificates.crt ]] || missing+=(ca-certificates)
  if [[ ${missing[*]} ]] && ! command -v apt-get >/dev/null; then
    fail HOST.SYSTEM "Debian or Ubuntu, or Nix, git and Python with venv installed" \
      "no apt-get, and missing: ${missing[*]}" "this machine" "Install them and run the same command."
  fi
  for package in "${missing[@]}"; do
    step "installing $package" apt_install "$package" ||
      fail HOST.PACKAGE "apt-get to install $package" "$(last_error E:)" "$log" \
        "Make 'apt-get install $package' work, then run the same command."
  done
  /usr/bin/python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail HOST.SYSTEM "Python 3.11 or newer" "$(/usr/bin/python3 -V)" /usr/bin/python3 \
      "Use Debian 12, Ubuntu 24.04 or newer."
}

last_error() { # PREFIX: the log's last line that starts with it, else its last line
  grep "^$1" "$log" | tail -n 1 | grep . || tail -n 1 "$log"
}

apt_install() { # PACKAGE. The second try is for old lists and for a dpkg that was interrupted.
  # Recommends would bring the Nix daemon, a service.
  local install=(apt-get install -y -q --no-install-recommends
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$1")
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  "${install[@]}" || { dpkg --configure -a && apt-get update -q && "${install[@]}"; }
}

fetch_pins() { # THE USER'S COMMAND...
  local made_of wheels command=(fetch "${builder[@]}") list=nix/pins/harness.json code=0
  # The user's own sources, as nothing else helps where the usual ones lack something: a first `pins fetch --mirror URI`
  # or `--from FOLDER`, and for a first `pins import FOLDER` nothing but that folder.
  case "${1-} ${2-}" in
    "pins fetch") command+=("${@:3}") ;;
    "pins import")
      local word
      for word in "${@:3}"; do
        if [[ -d $word/files ]]; then
          command=(import "$word")
          # A link, because pip takes a blank for the end of a place.
          ln -sfn "$(realpath -- "$word")/files" "$state/carried"
          local -x PIP_NO_INDEX=1 PIP_FIND_LINKS=$state/carried
        fi
      done
      ;;
  esac
  wheels=$(/usr/bin/python3 -I -c 'import json, sys
pins = json.load(open(sys.argv[1]))["pins"]
print(*(p["name"] + "==" + p["version"] for p in pins if p["kind"] == "wheel"))' \
    "$checkout/$list" 2>>"$log") ||
    fail PIN.PROFILE "the pin list of harness" "$(tail -n 1 "$log")" "$checkout/$list" "Run: git restore $list"
  made_of="$(/usr/bin/python3 -V) $wheels"
  if [[ $(cat "$state/venv/made-of" 2>/dev/null) != "$made_of" ]]; then
    # shellcheck disable=SC2086
    step "making the bootstrap environment" make_venv "$made_of" $wheels ||
      fail PIN.FETCH "pip to install the harness's wheels" "$(last_error ERROR:)" "$log" \
        "Check pip's index (pip config list) and the network, then run the same command."
  fi
  # Bytecode written into src would belong to root in a user's clone. stdout is the user's command's: of this one
  # only an error goes there.
  PYTHONPATH=$checkout/src PYTHONDONTWRITEBYTECODE=1 job "$state/venv/bin/python" -m sparkserve.cli.main \
    pins "${command[@]}" ${as_json:+"$as_json"} >"$state/fetch.json" 9>&- || code=$?
  if ((code)); then
    cat "$state/fetch.json"
    exit "$code"
  fi
  pin_sums >"$state/fetched"
}

pin_sums() { (cd "$checkout/nix/pins" && sha256sum "${builder[@]/%/.json}" 2>&1); }

make_venv() { # MADE-OF WHEEL==VERSION...
  local made_of=$1
  shift
  rm -rf "$state/venv.new"
  # Only a tool to fetch with: what it fetches is verified by hash, and the harness never runs from it.
  /usr/bin/python3 -I -m venv "$state/venv.new" &&
    PIP_USER=0 "$state/venv.new/bin/python" -m pip install --no-deps --only-binary :all: "$@" &&
    echo "$made_of" >"$state/venv.new/made-of" &&
    rm -rf "$state/venv" &&
    mv "$state/venv.new" "$state/venv"
}

need_namespaces() {
  unshare --user --map-root-user --mount --net --pid --fork --mount-proc true >>"$log" 2>&1 ||
    fail HOST.NAMESPACES "user namespaces, for the build sandbox and the engine" "$(tail -n 1 "$log")" \
      "this kernel or container" \
      "Set sysctl user.max_user_namespaces above 0; leave a plain chroot; run a container privileged."
}

refresh() { # THE USER'S COMMAND...: build the harness, unless the start we waited for did
  stale || return 0
  [[ -e $checkout/.git ]] ||
    fail HOST.SYSTEM "a git clone (flakes see what git tracks)" "no .git" "$checkout" "Clone it with git."
  # A URL must quote all others. Nix 2.8 does not find the folder by the quoted path, takes it for a bare repository
  # and lets git fetch from it: the build is then of the last commit, in silence, not of the files.
  [[ $checkout =~ ^[A-Za-z0-9/._~+,=@-]+$ ]] ||
    fail HOST.SYSTEM "a path of plain letters, digits and ._~+,=@- (Nix 2.8 does not see edits in others)" \
      "$checkout" "the checkout" "Move the clone."
  [[ -x $harness ]] || need_namespaces
  install_missing
  # From before the build: an edit made meanwhile is newer.
  touch "$state/stamp.new"
  if [[ ! -x $harness || $(pin_sums) != "$(cat "$state/fetched" 2>/dev/null)" ]]; then fetch_pins "$@"; fi
  step "building the harness" nix build --print-build-logs --out-link "$state/harness" \
    "git+file://$checkout?shallow=1#sparkserve" || build_failed
  local untracked
  untracked=$(git -C "$checkout" ls-files --others --exclude-standard src nix pkgs/sparkserve | head -n 1)
  if [[ $untracked ]]; then
    # No new stamp, so that the start after `git add` builds again.
    echo "Not built in, since git does not track it: $untracked (git add it)" >&2
  else
    mv "$state/stamp.new" "$state/stamp"
  fi
}

build_failed() { # our Nix code throws "ID | expected | found | where | do"
  local ours
  ours=$(grep -aoE '[A-Z]+\.[A-Z]+ \| .*' "$log" | tail -n 1 || true)
  if [[ $ours ]]; then
    IFS='|' read -ra ours <<<"${ours// | /|}"
    fail "${ours[@]}"
  fi
  tail -n 20 "$log" >&2
  fail NIX.BUILD "Nix to build the harness" "the error above" "$log" "Repair what it names and start again."
}
