"""How long a hook in a sandbox takes to be a row outside of it.

    bridge.py BINARY RUNS DIRECTORY

Prints the median and the 95th percentile, in nanoseconds, from the start of a hook
to the line of `tongs-agents watch` in another store, over an export, a pipe and a
bridge that is run. Each hook comes at a random moment after the last one was seen.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time


def main():
    binary, runs, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    inside, outside = (os.path.join(directory, name) for name in ("inside", "outside"))
    env = {**os.environ, "TONGS_AGENTS_STATE_DIR": outside}
    there = {**os.environ, "TONGS_AGENTS_STATE_DIR": inside}
    export = ["env", "TONGS_AGENTS_STATE_DIR=" + inside, binary, "agents", "export", "--follow"]
    subprocess.run([binary, "agents", "bridge", "add", "b", "--", *export], env=env, check=True)
    bridge = subprocess.Popen(
        [binary, "agents", "bridge", "run", "b"], env=env, stderr=subprocess.DEVNULL
    )
    watch = subprocess.Popen(
        [binary, "agents", "watch", "--json"], env=env, stdout=subprocess.PIPE
    )
    payload = b'{"session_id":"s","cwd":"/tmp"}'

    def hook(event):
        begin = time.monotonic_ns()
        subprocess.run([binary, "hook", "claude", event], env=there, input=payload, check=True)
        return begin

    def seen(turn):
        for line in watch.stdout:
            session = json.loads(line).get("session", {})
            if session.get("bridge") == "b" and session.get("turn") == turn:
                return time.monotonic_ns()
        raise SystemExit("bridge.py: the watch ended")

    try:
        hook("SessionStart")
        seen(0)
        took = []
        for turn in range(1, runs + 1):
            time.sleep(random.uniform(0.02, 0.15))
            begin = hook("UserPromptSubmit")
            took.append(seen(turn) - begin)
        took.sort()
        print(int(statistics.median(took)), took[min(len(took) - 1, len(took) * 95 // 100)])
    finally:
        for process in (watch, bridge):
            process.terminate()
            process.wait()


main()
