# SPDX-License-Identifier: Apache-2.0
"""What the statistics programs share: a fleet of our own, jobs in it, the API, one result line.

Nothing here knows what the controller should find; each program says that itself. Processes are ended by
their ids; folders are temporary; ports are chosen by the controller.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

BIN = os.environ.get("FR_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "bin"))
LEDGER_ERROR_S = 0.001  # law 7


def program(name):
    return os.path.join(BIN, name)


def wait_for(what, limit_s, condition, every_s=0.05):
    """The first true answer of condition(); the program fails when none comes in time."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        answer = condition()
        if answer:
            return answer
        time.sleep(every_s)
    raise AssertionError(f"waited {limit_s:.0f} s in vain for: {what}")


class Fleet:
    """A controller and agents n0.. as children; kill(name) is kill -9, start(name) starts it again where it was."""

    def __init__(self, nodes, breaker_nodes=1000):
        self.dir = tempfile.mkdtemp(prefix="fullrank-slow-")
        self.shm = tempfile.mkdtemp(prefix="fullrank-slow-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.nodes = [f"n{i}" for i in range(nodes)]
        self.port = 0
        self.children = {}
        self.jobs = []
        self.env = dict(os.environ, FULLRANK_POLICY_BREAKER_NODES=str(breaker_nodes), FULLRANK_LOG="notice")
        self.token = f"{self.dir}/token"

    def __enter__(self):
        self.start("controller")
        for node in self.nodes:
            self.start(node)
        wait_for("all nodes", 20, lambda: sum(n["state"] != "unknown" for n in self.get("nodes")["items"]) == len(self.nodes))
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            if job.poll() is None:
                job.send_signal(signal.SIGTERM)
        for job in self.jobs:
            try:
                job.wait(15)
            except subprocess.TimeoutExpired:
                job.kill()
        for child in reversed(list(self.children.values())):
            child.terminate()
        for child in self.children.values():
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.shm, ignore_errors=True)

    def start(self, name):
        log = open(f"{self.dir}/{name}.log", "a")
        if name == "controller":
            port_file = f"{self.dir}/port"
            if os.path.exists(port_file):
                os.unlink(port_file)
            command = [program("fullrank-controller"), "--listen", f"127.0.0.1:{self.port}", "--port-file", port_file, "--state", f"{self.dir}/controller",
                       "--token-file", self.token, "--mode", "act", "--engine", "local"]
        else:
            os.makedirs(f"{self.shm}/{name}", exist_ok=True)
            command = [program("fullrank-agent"), "--node", name, "--server", self.server, "--token-file", self.token, "--probe-dir", f"{self.shm}/{name}",
                       "--spool", f"{self.dir}/spool-{name}", "--machine-id", "one", "--engine", "local"]
        self.children[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env)
        log.close()
        if name == "controller":
            text = wait_for("the controller's port", 20, lambda: os.path.exists(port_file) and open(port_file).read().strip())
            self.port = int(text.rsplit(":", 1)[-1])
            self.server = f"http://127.0.0.1:{self.port}"

    def kill(self, name):
        self.children[name].kill()
        self.children[name].wait()

    def get(self, path, default=None):
        try:
            with urllib.request.urlopen(f"{self.server}/api/v1/{path}", timeout=5) as reply:
                return json.load(reply)
        except (OSError, ValueError):
            if default is None:
                return {"items": []}
            return default

    def job(self, name, steps, *options, nodes=4, ranks=2, spares=0, grid=("--dp", "2", "--pp", "2", "--tp", "2"), small=True, level="perf"):
        """Start fullrank-train under `fullrank supervise`; its output goes to the fleet's folder."""
        size = ["--layers", "2", "--d-model", "64", "--heads", "4"] if small else []
        log = open(f"{self.dir}/{name}.out", "w")
        child = subprocess.Popen([program("fullrank"), "supervise", "--server", self.server, "--token-file", self.token, "--state-dir", f"{self.dir}/{name}.job",
                                  "--name", name, "--nodes", str(nodes), "--ranks-per-node", str(ranks), "--spares", str(spares), "--probe", level, "--",
                                  program("fullrank-train"), *grid, "--batch", "8", "--micro-batch", "2", *size, "--steps", str(steps), "--quiet",
                                  "--checkpoint-dir", f"{self.dir}/{name}.ck", "--loss-file", f"{self.dir}/{name}.loss", *options],
                                 stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        self.jobs.append(child)
        return child

    def losses(self, name):
        """{step: bits}; a step that was made twice must have the same bits."""
        seen = {}
        try:
            lines = open(f"{self.dir}/{name}.loss").readlines()
        except OSError:
            return seen
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # cut by a kill
            assert seen.setdefault(row["step"], row["loss_bits"]) == row["loss_bits"], f"step {row['step']} was made twice with different losses"
        return seen

    def only_job(self):
        items = self.get("jobs")["items"]
        return self.get(f"jobs/{items[-1]['job']}", {}) if items else {}

    def acts(self):
        """Decisions that did something."""
        return [d for d in self.get("decisions?limit=0")["items"] if d["choice"] in ("isolate", "restart", "give_up")]

    def check_books(self):
        worst = 0.0
        for row in self.get("jobs")["items"]:
            goodput = wait_for(f"the books of {row['job']}", 10, lambda: self.get(f"jobs/{row['job']}/goodput", {}))
            goodput = goodput.get("goodput", goodput)
            error = abs(goodput["wall_s"] - sum(b["seconds"] for b in goodput["buckets"]))
            worst = max(worst, error, abs(goodput["error_s"]))
        assert worst < LEDGER_ERROR_S, f"the ledger is off by {worst} s"
        return worst


def demo(*options, limit_s=3000):
    """Run `fullrank demo -o json`; its answer, whatever the exit code."""
    with tempfile.TemporaryDirectory(prefix="fullrank-slow-") as folder:
        child = subprocess.Popen([program("fullrank"), "demo", "-o", "json", "--html", f"{folder}/report.html", *options], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        try:
            out, err = child.communicate(timeout=limit_s)
        finally:
            if child.poll() is None:  # time is up, or we are told to end: so is the demo, which cleans up after itself
                child.terminate()
                child.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        sys.stderr.write(err[-4000:])
        raise AssertionError(f"the demo gave no answer (exit code {child.returncode})")
    answer = json.loads(lines[-1])
    if not answer["ok"]:
        sys.stderr.write(err[-6000:])
    assert abs(answer["ledger_error_s"]) < LEDGER_ERROR_S, answer["ledger_error_s"]
    return answer


def spread(values):
    v = sorted(values)
    return f"median {v[len(v) // 2]:.2f}, worst {v[-1]:.2f}" if v else "none"


def main(body):
    """Run, print one result line, exit 0, 1 or 77 (skipped)."""
    name = os.path.basename(sys.argv[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    try:
        print(f"ok {name}: {body()}", flush=True)
    except AssertionError as error:
        print(f"FAILED {name}: {error}", flush=True)
        sys.exit(1)


def seeded():
    seed = int(os.environ.get("FR_SEED", "0")) or random.SystemRandom().randrange(1, 1000000)
    print(f"seed {seed} (repeat: FR_SEED={seed})", flush=True)
    return random.Random(seed)
