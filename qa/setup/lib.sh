# Shared by the set-up scripts: messages, steps that run once, the cache folder.
# Sourced, never run.

SWIM_CACHE=$(realpath -m "${SWIM_CACHE:-/var/cache/swimstore}")
STAMPS="$SWIM_CACHE/stamps"
LOGS="$SWIM_CACHE/log"

say() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

die() {
  printf '%s: error: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

require_root() {
  [ "$(id -u)" -eq 0 ] ||
    die "set-up makes a chroot and mounts into it: run it as root (sudo $0)"
}

# One set-up at a time per cache folder. The lock ends with the process.
lock_set_up() {
  mkdir -p "$STAMPS" "$LOGS"
  exec 9>"$SWIM_CACHE/.set-up.lock"
  if ! flock -n 9; then
    say "another set-up is running in $SWIM_CACHE: waiting for it"
    flock 9
  fi
}

# The key of a step is what it does: the text of its function, and its inputs.
step_key() {
  local fn=$1
  shift
  { declare -f "$fn"; printf '%s\n' "$@"; } | sha256sum | cut -d' ' -f1
}

step_is_done() {
  local stamp=$1 fn=$2
  shift 2
  [ -e "$STAMPS/$stamp" ] && [ "$(<"$STAMPS/$stamp")" = "$(step_key "$fn" "$@")" ]
}

end_step() {
  local group
  for group in $(jobs -p); do
    kill -- "-$group" 2>/dev/null || true
  done
  die "interrupted: run again to go on (finished steps are kept)"
}

# run_step STAMP WHAT FUNCTION [INPUT...]: runs FUNCTION INPUT... unless it has
# succeeded before with the same text and inputs. Its output goes to a log; a
# line with the elapsed time says that it is alive.
run_step() {
  local stamp=$1 what=$2 fn=$3
  shift 3
  if step_is_done "$stamp" "$fn" "$@"; then
    return 0
  fi
  local log="$LOGS/$stamp.log" start=$SECONDS job shown
  say "$what: started (log: $log)"
  rm -f "$STAMPS/$stamp"
  # The lock's descriptor stays here: nothing a step leaves behind may hold it. A
  # process group of its own, so that an interrupted set-up ends all of it.
  trap end_step INT TERM HUP
  set -m
  (set -euo pipefail; "$fn" "$@") >"$log" 2>&1 </dev/null 9>&- &
  job=$!
  set +m
  shown=$SECONDS
  while kill -0 "$job" 2>/dev/null; do
    sleep 0.2
    if [ $((SECONDS - shown)) -ge 10 ]; then
      say "$what: $((SECONDS - start)) s"
      shown=$SECONDS
    fi
  done
  if ! wait "$job"; then
    tail -n 15 "$log" >&2
    die "$what failed after $((SECONDS - start)) s: see $log, then run again (finished steps are kept)"
  fi
  trap - INT TERM HUP
  step_key "$fn" "$@" >"$STAMPS/$stamp.new"
  mv "$STAMPS/$stamp.new" "$STAMPS/$stamp"
  say "$what: done in $((SECONDS - start)) s"
}
