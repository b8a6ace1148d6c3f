# SPDX-License-Identifier: Apache-2.0
# lib.sh - what the tests of the programs share: a fleet of our own, conditions, JSON
#
# Each test has its own folder (sharness), its own free port (the controller chooses it) and ends what it
# started, by process id.
: "${FR_BIN:?run the tests by ctest}"
PATH="$FR_BIN:$PATH"
unset FULLRANK_SERVER FULLRANK_TOKEN_FILE FULLRANK_STATE_DIR FULLRANK_PROBE FULLRANK_LOG XDG_STATE_HOME XDG_CONFIG_HOME
. "$SHARNESS"

WORK=$(mktemp -d /tmp/fullrank-t-XXXXXX)
SHM=$(mktemp -d /dev/shm/fullrank-t-XXXXXX)
PIDS=
export FULLRANK_STATE_DIR="$WORK/state"

fr_end() {
	for pid in $PIDS; do kill "$pid" 2>/dev/null; done
	for pid in $PIDS; do wait "$pid" 2>/dev/null; done
	rm -rf "$WORK" "$SHM"
}
# sharness has an EXIT trap of its own (die): ours goes first and hands over
trap 'fr_code=$?; fr_end; (exit $fr_code); die' EXIT
trap 'exit 130' INT TERM

# json EXPRESSION < document: print a value; the document is d, e.g. json 'd["items"][0]["kind"]'
json() {
	python3 -c 'import json, sys; d = json.load(sys.stdin); v = eval(sys.argv[1]); print(v if v is not None else "-")' "$1"
}

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	fr_until=$(($(date +%s) + $1)); shift
	until "$@"; do
		test "$(date +%s)" -lt "$fr_until" || { echo >&2 "waited in vain for: $*"; return 1; }
		sleep 0.1
	done
}

# start_controller: FULLRANK_SERVER and FULLRANK_TOKEN_FILE are set; a second call takes the same port again
start_controller() {
	rm -f "$WORK/port"
	fullrank-controller --listen "127.0.0.1:${PORT:-0}" --port-file "$WORK/port" --state "$WORK/controller" --token-file "$WORK/token" \
		--mode act --engine local >>"$WORK/controller.log" 2>&1 &
	CONTROLLER=$!
	PIDS="$PIDS $CONTROLLER"
	wait_for 15 test -s "$WORK/port" || return 1
	PORT=$(sed 's/.*://' "$WORK/port")
	FULLRANK_SERVER=http://127.0.0.1:$PORT
	FULLRANK_TOKEN_FILE=$WORK/token
	export FULLRANK_SERVER FULLRANK_TOKEN_FILE
}

# start_agent NODE: its pid is in AGENT
start_agent() {
	mkdir -p "$SHM/$1"
	fullrank-agent --node "$1" --server "$FULLRANK_SERVER" --token-file "$FULLRANK_TOKEN_FILE" --probe-dir "$SHM/$1" \
		--spool "$WORK/spool-$1" --machine-id test --engine local >>"$WORK/$1.log" 2>&1 &
	AGENT=$!
	PIDS="$PIDS $AGENT"
}

node_is() { test "$(fullrank node show "$1" -o json 2>/dev/null | json 'd["state"]' 2>/dev/null)" = "$2"; }
job_is() { test "$(fullrank job list -o json 2>/dev/null | json 'd["items"][0]["state"]' 2>/dev/null)" = "$1"; }
job_step_over() { test "$(fullrank job list -o json 2>/dev/null | json 'd["items"][0].get("step") or 0' 2>/dev/null || echo 0)" -gt "$1"; }
found() { fullrank incident list -o json 2>/dev/null | json "[1 for i in d['items'] if i['kind'] == '$1' and i.get('rank') == $2][0]" >/dev/null 2>&1; }
# all_losses FILE N: every step 1..N has a loss, and a step that was made again has the same bits
all_losses() {
	python3 - "$1" "$2" <<-'PY'
	import json, sys
	seen = {}
	for line in open(sys.argv[1]):
	    try:
	        row = json.loads(line)
	    except ValueError:
	        continue
	    assert seen.setdefault(row["step"], row["loss_bits"]) == row["loss_bits"], row
	assert sorted(seen) == list(range(1, int(sys.argv[2]) + 1)), len(seen)
	PY
}
SMALL="--layers 2 --d-model 64 --heads 4 --batch 8 --micro-batch 4 --checkpoint-every 25 --quiet"
