"""Checks a build against claude-fleet-monitor 0.9.1, the reference.

    check.py BINARY [SEED [COUNT]]

The build and the reference's hook run as programs; the reference's reader is
called. Both must list what the other wrote, with the same values; both must
accept and refuse the same files, COUNT mutated records among them, but for the
rows of DEPARTURES, the one list of where they are meant to differ. A row that
its witnesses do not bear out fails too. The same SEED gives the same records.

A line a check, then `N passed, N failed`; exit 1 when one failed.
"""

import fcntl
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Callable

from claude_fleet_monitor import discovery as theirs
from claude_fleet_monitor.models import canonical_session_id

PAYLOADS = Path(__file__).resolve().parent.parent / "fixtures" / "payloads"
THEIR_HOOK = str(Path(sys.executable).parent / "claude-fleet-hook")

# What both formats have; all but the times are held equal everywhere.
SHARED = """schema_version record_kind canonical_id session_id instance_id
harness_id agent repo cwd pid process_start process_identity status detail tool
ts started source last_event terminal terminal_env focus_target sequence
arrival_sequence""".split()
# What our reader adds, and what it drops where the type is wrong.
DERIVED = "short_id age_seconds needs_attention seen quiet unverified".split()
OURS = """boot_id pid_ns ts_ms boot_ms mono_ms status_ms turn turn_id prev_turn_id waiting_for waiting_from
waiting_since waiting_tool waiting_agent background branch worktree title method
launch_id profile_id terminal_id bridge host""".split()


# The world: a home, a store, our programs under their names, agents.


class Wrong(Exception):
    """A check found something that does not hold."""


class Skip(Exception):
    """A check cannot be made here."""


def need(holds, what):
    if not holds:
        raise Wrong(what)


class World:
    """A throw-away home with stores in it."""

    def __init__(self, binary):
        self.dir = Path(tempfile.mkdtemp(prefix="interop-"))
        self.bin, self.home = self.dir / "bin", self.dir / "home"
        for made in (self.bin, self.home):
            made.mkdir(mode=0o700)
        for name in ("tongs-hook", "tongs-agents", "tongs-bridge-import"):
            (self.bin / name).symlink_to(Path(binary).resolve())
        for name in ("claude", "codex", "pi"):
            shutil.copy("/bin/bash", self.bin / name)
        self.stores = 0
        self.agents = []

    def store(self):
        self.stores += 1
        return Store(self, self.dir / f"state-{self.stores}")

    def env(self, store):
        return {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TONGS_AGENTS_STATE_DIR": str(store.root),
            "FLEET_DIR": str(store.sessions),
        }

    def agent(self, name):
        self.agents.append(Agent(self, name))
        return self.agents[-1]

    def close(self):
        for agent in self.agents:
            agent.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Store:
    """A state directory of ours whose records are the reference's FLEET_DIR."""

    def __init__(self, world, root):
        self.world, self.root, self.sessions = world, root, root / "sessions"
        # The reference would leave its directory to the umask, 0755, which
        # ours refuses: it keeps its own private.
        for made in (self.root, self.sessions):
            made.mkdir(mode=0o700)

    def put(self, name, raw):
        path = self.sessions / name
        path.write_bytes(raw)
        path.chmod(0o600)
        return path

    def files(self):
        return sorted(p for p in self.sessions.iterdir() if p.name.endswith(".json"))

    def wipe(self):
        for path in self.sessions.iterdir():
            path.unlink()

    def ours(self, *words):
        """The lines of our `status`, as bytes."""
        ran = subprocess.run(
            [str(self.world.bin / "tongs-agents"), "status", "--jsonl", *words],
            env=self.world.env(self), stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        )
        need(ran.returncode == 0, f"status ended with {ran.returncode}: {ran.stderr!r}")
        return ran.stdout.splitlines()

    def ours_json(self, *words):
        """The sessions of our `status --json`."""
        ran = subprocess.run(
            [str(self.world.bin / "tongs-agents"), "status", "--json", *words],
            env=self.world.env(self), stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        )
        need(ran.returncode == 0, f"status ended with {ran.returncode}: {ran.stderr!r}")
        return json.loads(ran.stdout)["sessions"]

    def theirs(self, hidden=True):
        """What their reader lists; `hidden` with what better records hide."""
        theirs.FLEET_DIR = self.sessions
        return theirs.read_stored_sessions() if hidden else theirs.read_session_records()


class Agent:
    """A process that is called like an agent and runs hooks as its children."""

    def __init__(self, world, name):
        self.world, self.name, self.calls = world, name, 0
        self.work = world.dir / f"work-{name}-{len(world.agents)}"
        self.work.mkdir()
        self.process = subprocess.Popen(
            [str(world.bin / name)], env={"PATH": "/usr/bin:/bin"}, cwd=self.work,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )

    @property
    def pid(self):
        return self.process.pid

    @property
    def start(self):
        return theirs.get_process_info(self.pid).start_token

    def run(self, store, argv, payload):
        """Runs a program as a child; returns its code and what it printed."""
        (self.work / "in").write_bytes(payload)
        env = [f"{k}={v}" for k, v in self.world.env(store).items()]
        line = " ".join(shlex.quote(w) for w in ["env", *env, *argv])
        self.process.stdin.write(f"{line} <in >out 2>err; echo $?\n")
        code = int(self.process.stdout.readline())
        return code, (self.work / "out").read_bytes(), (self.work / "err").read_bytes()

    def hook(self, store, argv, payload):
        """Runs a hook, which must be silent."""
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        ran = self.run(store, argv, payload)
        need(ran == (0, b"", b""), f"{argv} was not silent: {ran}")

    def ours(self, store, event, payload, *more):
        self.hook(store, ["tongs-hook", self.name, event, *more], payload)

    def theirs(self, store, event, payload):
        self.hook(store, [THEIR_HOOK, event, "--agent", self.name], payload)

    def strict(self, store, event, payload):
        """Runs our hook and returns the outcome that it tells."""
        raw = json.dumps(payload).encode()
        code, out, err = self.run(store, ["tongs-hook", "--strict", self.name, event], raw)
        need(err == b"", f"--strict wrote to stderr: {err!r}")
        return {"code": code, **json.loads(out)}

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def fleet(agent, session, sequence, status="running", **more):
    """A normalised event."""
    return {
        "schema_version": 1,
        "event_id": f"{agent.name}.test",
        "status": status,
        "session_id": session,
        "cwd": "/home/dev/src/lantern",
        "instance_id": "inst-1",
        "pid": agent.pid,
        "sequence": sequence,
        "detail": "d\u00e9tail \u2603",
        "tool": "Bash",
        **more,
    }


def shared(record, *without):
    return {k: record[k] for k in SHARED if k in record and k not in without}


def same(ours, other, what, *without):
    a, b = shared(ours, *without), shared(other, *without)
    bad = [
        f"{k}: {a.get(k, '-')!r}, {b.get(k, '-')!r}"
        for k in SHARED
        if a.get(k, "-") != b.get(k, "-")
    ]
    need(not bad, f"{what}: {'; '.join(bad)}")


def by_id(records):
    return {r.get("canonical_id") or r["session_id"]: r for r in records}


def same_lists(store, what, hidden=True):
    """Both readers list the same records with the same values."""
    words = ["--all"] if hidden else []
    ours, others = by_id(store.ours_json(*words)), by_id(store.theirs(hidden))
    need(
        ours.keys() == others.keys(), f"{what}: ours lists {sorted(ours)}, theirs {sorted(others)}"
    )
    for key, record in ours.items():
        same(record, others[key], f"{what}, {key}")
    return ours


# The checks of programs.

CHECKS = []


def check(name):
    def add(function):
        CHECKS.append((name, function))
        return function
    return add


def sample_payloads():
    """Every sample of the three harnesses that both know."""
    index = json.loads((PAYLOADS / "index.json").read_text())["payloads"]
    rows = [row for row in index if row["harness"] in ("claude", "codex", "pi")]
    need(rows, f"no payloads in {PAYLOADS}")
    return [(row, (PAYLOADS / row["file"]).read_bytes()) for row in rows]


# The event that a harness sends when a prompt is submitted.
PROMPT = {"claude": "UserPromptSubmit", "codex": "UserPromptSubmit", "pi": "before_agent_start"}


@check("their validator accepts all that our hook writes")
def their_validator(run):
    records = set()
    store = run.store()
    for row, payload in sample_payloads():
        agent = run.agents[row["harness"]]
        # Alone, after a prompt, and once more over what it left.
        for before in ((), (PROMPT[row["harness"]],), (row["event"],)):
            store.wipe()
            for event in (*before, row["event"]):
                if row["transport"] == "argv-last":
                    agent.hook(store, ["tongs-hook", agent.name, event, payload.decode()], b"")
                else:
                    agent.ours(store, event, payload)
            for path in store.files():
                raw = path.read_bytes()
                theirs.FLEET_DIR = store.sessions
                need(
                    theirs._validate_record(json.loads(raw)) is not None, f"{row['file']}: {raw!r}"
                )
                need(
                    theirs._read_record(path) is not None, f"{row['file']} at {path.name}: {raw!r}"
                )
                records.add(raw)
                run.corpus.append(raw)
            same_lists(store, row["file"])
    return f"{len(sample_payloads())} payloads, {len(records)} records"


@check("their validator accepts what our hook makes of odd payloads")
def odd_payloads(run):
    rng, written = run.rng("payloads"), 0
    store = run.store()
    samples = [
        (row, json.loads(raw)) for row, raw in sample_payloads() if row["transport"] != "argv-last"
    ]
    for _ in range(300):
        row, payload = rng.choice(samples)
        payload = json.loads(json.dumps(payload))
        inner = payload if row["harness"] != "pi" else payload[rng.choice(["event", "ctx"])]
        for _ in range(rng.randrange(1, 4)):
            inner[
                rng.choice(
                    [*inner, "tool_name", "toolName", "session_title", "agent_id", "prompt_id"]
                )
            ] = odd(rng)
        if rng.random() < 0.1:
            payload = fleet(run.agents[row["harness"]], "odd", rng.randrange(9))
            payload[
                rng.choice(["session_id", "instance_id", "cwd", "detail", "tool", "event_id", "ts"])
            ] = odd(rng)
        event = row["event"] if "event_id" not in payload else "fleet-event"
        agent = run.agents[row["harness"]]
        if rng.random() < 0.3:
            store.wipe()
        agent.ours(store, event, dump(payload, rng.random() < 0.5))
        for path in store.files():
            theirs.FLEET_DIR = store.sessions
            need(
                theirs._read_record(path) is not None,
                f"{path.read_bytes()!r} after {event} {dump(payload)!r}",
            )
            written += 1
        same_lists(store, f"{event} {dump(payload)!r}")
    need(written > 200, f"only {written} records")
    return f"300 payloads, {written} records"


def odd(rng):
    """A value that a harness might send and should not."""
    one = rng.choice(
        [
            "x",
            "\u00e9",
            "\u2603",
            "\U0001f600",
            "\n",
            "\0",
            "\x7f",
            "\ud800",
            "/",
            "a/../",
            '"\\',
            "\u202e",
        ]
    )
    size = rng.choice(
        [0, 1, 3, 64, 119, 120, 121, 255, 256, 257, 511, 512, 513, 1500, 4095, 4096, 4097, 9000]
    )
    return rng.choice(
        [
            one * size,
            one * size,
            one * size,
            "x" * rng.randrange(3) + one * (size // 3),
            None,
            5,
            -1,
            2**70,
            1.5,
            True,
            [],
            {},
            [one],
            {"a": one},
        ]
    )


@check("their reader lists what our hook writes")
def their_reader(run):
    store = run.store()
    for name, agent in run.agents.items():
        payload = {
            "session_id": f"native-{name}",
            "cwd": "/home/dev/src/lantern",
            "tool_name": "Bash",
        }
        if name == "pi":
            payload = {
                "event": {"toolName": "bash"},
                "ctx": {"sessionId": "native-pi", "cwd": "/srv"},
            }
        agent.ours(store, PROMPT[name], payload)
        agent.ours(store, {"pi": "tool_execution_start"}.get(name, "PreToolUse"), payload)
        agent.ours(store, "fleet-event", fleet(agent, f"fleet-{name}", 7))
    listed = same_lists(store, "all")
    same_lists(store, "shown", hidden=False)
    need(len(listed) >= 6, f"only {sorted(listed)}")
    theirs.FLEET_DIR = store.sessions
    for path in store.files():
        record = theirs._read_record(path)
        stored = json.loads(path.read_bytes())
        same(stored, record, path.name)
        agent = run.agents[record["harness_id"]]
        process = theirs.resolve_session_process(record)
        need(
            process and process.pid == agent.pid,
            f"their look at the process of {path.name}: {process}",
        )
        run.corpus.append(path.read_bytes())
    return f"{len(listed)} records, each with its process"


@check("their validator accepts what notify and cleanup write, but for other")
def their_validator_commands(run):
    store = run.store()
    tongs = str(run.world.bin / "tongs-agents")

    def command(*words):
        ran = subprocess.run([tongs, *words], env=run.world.env(store), stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=60)
        need(ran.returncode == 0, f"{words}: {ran}")

    for name, agent in run.agents.items():
        common = ["notify", "--harness", name, "--status", "waiting", "--detail", "d\u00e9tail"]
        command(*common, "--session", f"with-{name}", "--pid", str(agent.pid))
        command(*common, "--session", f"without-{name}", "--tool", "Bash", "--cwd", "/srv")
    need(len(same_lists(store, "notify")) == 6, "notify did not write 6 records")
    run.corpus += [p.read_bytes() for p in store.files()]
    command("notify", "--harness", "other", "--session", "s", "--status", "idle", "--cwd", "/srv")
    ours, others = store.ours_json("--all"), store.theirs()
    need(
        [r["session_id"] for r in ours if r["harness_id"] == "other"] == ["s"],
        "ours does not list other",
    )
    need(
        len(others) == 6 and not [r for r in others if r["harness_id"] == "other"],
        "theirs lists other",
    )
    # An agent without a hook is found by cleanup.
    store = run.store()
    command("cleanup")
    found = [r for r in same_lists(store, "cleanup").values() if r.get("record_kind") == "process"]
    need(
        {str(run.agents[name].pid) for name in ("claude", "codex")} <= {r["pid"] for r in found},
        f"{found}",
    )
    run.corpus += [p.read_bytes() for p in store.files()]
    return f"{len(others)} records, {len(found)} of processes"


@check("their reader lists what was imported, without a bridge and over one")
def imported(run):
    store = run.store()

    def take(records, *words):
        ran = subprocess.run(
            [str(run.world.bin / "tongs-bridge-import"), *words],
            input=b"".join(dump(r) + b"\n" for r in records),
            env=run.world.env(store), capture_output=True, timeout=60,
        )
        need(ran.returncode == 0, f"{words}: {ran}")

    named = [
        base_record(harness_id=name, session_id=f"named-{name}", **{"key of nobody": [1, 2.5]})
        for name in ("claude", "codex", "pi")
    ]
    take(named)
    listed = same_lists(store, "import")
    need(len(listed) == 3, f"{sorted(listed)}")
    for record in named:
        same(listed[record["canonical_id"]], record, "import", "arrival_sequence")
    nobodys = [
        base_record(
            harness_id=name, session_id=f"far-{name}-\u2603", pid="", process_start="",
            instance_id="unresolved", process_identity="unresolved", host="far",
            focus_target={"kind": "unavailable"},
        )
        for name in ("claude", "codex", "pi")
    ]
    take(nobodys, "--bridge", "box")
    take([{**r, "sequence": 5, "status": "waiting"} for r in nobodys], "--bridge", "box")
    listed = same_lists(store, "import over a bridge")
    need(len(listed) == 6, f"{sorted(listed)}")
    changed = ("terminal", "terminal_env", "focus_target", "source", "sequence", "status",
               "arrival_sequence")
    for record in nobodys:
        there = listed[record["canonical_id"]]
        same(there, record, "import over a bridge", *changed)
        told = (there["sequence"], there["status"], there["bridge"], there["host"])
        need(told == (5, "waiting", "box", "far"), f"{there}")
    run.corpus += [p.read_bytes() for p in store.files()]
    return f"{len(listed)} records"


@check("our reader lists what their hook writes")
def our_reader(run):
    store = run.store()
    for name, agent in run.agents.items():
        if name != "pi":
            for event in ("session-start", "prompt-submit", "permission-request", "stop"):
                agent.theirs(
                    store,
                    event,
                    {
                        "session_id": f'native-{name} \u00e9\u2603"\\',
                        "cwd": "/home/dev/../dev/src/./lantern",
                        "tool_name": "Bash",
                        "last_assistant_message": "one\ntwo \u2603 " + "x" * 200,
                    },
                )
                run.corpus += [p.read_bytes() for p in store.files()]
        if name == "pi":
            agent.theirs(store, "fleet-event", fleet(agent, "fleet-pi", 1))
            agent.theirs(store, "fleet-event", fleet(agent, "fleet-pi", 2, "waiting"))
    nobodys = unrelated_harness()
    if nobodys:
        payload = json.dumps({"session_id": "nobody", "cwd": "/srv"}).encode()
        subprocess.run([THEIR_HOOK, "session-start", "--agent", nobodys], input=payload,
                       env=run.world.env(store), check=True, timeout=60)
    listed = same_lists(store, "all")
    same_lists(store, "shown", hidden=False)
    need(len(listed) == (4 if nobodys else 3), f"{sorted(listed)}")
    run.corpus += [p.read_bytes() for p in store.files()]
    return f"{len(listed)} records"


def unrelated_harness():
    """A discoverable harness that none of our ancestors is; None where all are."""
    for name in ("codex", "claude"):
        if theirs.find_ancestor_process(name, os.getpid()) is None:
            return name
    return None


ALPHABET = [
    *map(chr, range(1, 0x80)),
    *"\u00e9\u2603\u00df\u0130\u202e\u200b\u2028\ufeff\ufffd\U0001f600\U0010ffff",
]


def random_id(rng, limit=512):
    text = "".join(rng.choice(ALPHABET) for _ in range(rng.choice([1, 3, 12, 40, 130])))
    return text.encode()[:limit].decode(errors="ignore") or "x"


@check("canonical ids are the same")
def canonical_ids(run):
    store, rng = run.store(), run.rng("ids")
    agent = run.agents["pi"]
    for _ in range(120):
        session, instance = random_id(rng), random_id(rng)
        told = agent.strict(store, "fleet-event", fleet(agent, session, 1, instance_id=instance))
        want = canonical_session_id("pi", session, instance)
        need(told["canonical_id"] == want, f"{session!r} {instance!r}: {told}")
    # An id that is not the one of its parts makes our reader refuse the file.
    store, wanted = run.store(), set()
    for _ in range(2000):
        record = base_record(session_id=random_id(rng), instance_id=random_id(rng),
                             harness_id=rng.choice(["claude", "codex", "pi"]))
        wanted.add(record["canonical_id"])
        store.put(record_name(record["canonical_id"]), dump(record, rng.random() < 0.5))
    listed = [json.loads(line)["canonical_id"] for line in store.ours("--all")]
    need(sorted(listed) == sorted(wanted), f"{len(wanted)} written, {len(listed)} listed")
    return f"{120 + len(wanted)} ids"


@check("both hooks take turns on one session")
def turns(run):
    store, agent = run.store(), run.agents["claude"]
    session = {"session_id": "turns", "cwd": "/home/dev/src/lantern", "tool_name": "Bash",
               "last_assistant_message": "done"}
    started = None
    events = [
        ("ours", "SessionStart", "started"), ("theirs", "prompt-submit", "running"),
        ("ours", "PreToolUse", "running"), ("theirs", "permission-request", "waiting"),
        ("ours", "PostToolUse", "running"), ("ours", "Stop", "idle"),
        ("theirs", "tool-use", "running"), ("theirs", "stop-failure", "error"),
        ("ours", "UserPromptSubmit", "running"), ("theirs", "elicitation", "waiting"),
        ("ours", "Stop", "idle"), ("theirs", "session-end", "ended"),
    ]
    for count, (side, event, status) in enumerate(events, 1):
        getattr(agent, side)(store, event, session)
        listed = list(same_lists(store, f"after {side} {event}").values())
        need(len(listed) == 1, f"after {side} {event}: {len(listed)} records")
        record = listed[0]
        told = (
            record["arrival_sequence"],
            record["status"],
            record["pid"],
            record["process_start"],
        )
        need(told == (count, status, str(agent.pid), agent.start), f"after {side} {event}: {told}")
        started = started or record["started"]
        need(record["started"] == started, f"after {side} {event}: started changed")
        run.corpus.append(store.files()[0].read_bytes())
    # Theirs makes the record, ours goes on; and a session before its process.
    store = run.store()
    agent.theirs(store, "session-start", session)
    agent.ours(store, "Stop", session)
    record = store.ours_json("--all")
    need([r["arrival_sequence"] for r in record] == [2], f"ours after theirs: {record}")
    pi, store = run.agents["pi"], run.store()
    sides = [
        ("ours", 1, 1),
        ("theirs", 2, 2),
        ("ours", 2, 2),
        ("ours", 3, 3),
        ("theirs", 3, 3),
        ("theirs", 9, 4),
    ]
    for side, sequence, arrivals in sides:
        getattr(pi, side)(store, "fleet-event", fleet(pi, "turns", sequence))
        told = [r["arrival_sequence"] for r in same_lists(store, f"pi {sequence}").values()]
        need(told == [arrivals], f"after {side} with sequence {sequence}: {told}")
    return f"{len(events) + 2 + len(sides)} events"


@check("a session without its process goes over to the other's hook")
def handover(run):
    nobodys = unrelated_harness()
    if not nobodys:
        raise Skip("every harness is an ancestor of this run")
    agent = run.agents[nobodys]
    event = {"session_id": "handover", "cwd": "/srv"}
    raw = json.dumps(event).encode()
    for first in ([THEIR_HOOK, "session-start", "--agent", nobodys],
                  [str(run.world.bin / "tongs-hook"), nobodys, "SessionStart"]):
        store = run.store()
        ran = subprocess.run(
            first, input=raw, env=run.world.env(store), capture_output=True, timeout=60
        )
        need((ran.returncode, ran.stdout, ran.stderr) == (0, b"", b""), f"{ran}")
        need(
            [r["process_identity"] for r in store.ours_json("--all")] == ["unresolved"],
            "no such record",
        )
        run.corpus += [p.read_bytes() for p in store.files()]
        side = agent.ours if first[0] == THEIR_HOOK else agent.theirs
        side(store, "UserPromptSubmit" if side == agent.ours else "prompt-submit", event)
        left = [(r["process_identity"], r["pid"]) for r in same_lists(store, "after").values()]
        need(left == [("identified", str(agent.pid))], f"after {first}: {left}")
    return "2 ways"


@check("the same events give the same record")
def parity(run):
    compared = 0
    for name in ("claude", "codex"):
        agent = run.agents[name]
        ours, other = run.store(), run.store()
        events = [
            "session-start",
            "prompt-submit",
            "tool-use",
            "permission-request",
            "stop",
            "session-end",
        ]
        if name == "claude":
            # The prompt between: with us an elicitation, which names no tool, adds
            # nothing to a wait for a permission that is still open.
            events[4:4] = ["prompt-submit", "elicitation", "stop-failure"]
        for event in events:
            payload = {
                "session_id": "parity",
                "cwd": "/home/dev/src/./x/../lantern/",
                "tool_name": "Bash",
                "last_assistant_message": "one\r\ntwo\n" + "\u2603" * 130,
            }
            if event not in ("tool-use", "permission-request"):
                del payload["tool_name"]
            agent.ours(ours, event, payload)
            agent.theirs(other, event, payload)
            (a,), (b,) = ours.ours_json("--all"), other.theirs()
            same(a, b, f"{name} {event}", "ts", "started")
            compared += 1
    pi = run.agents["pi"]
    ours, other = run.store(), run.store()
    for sequence, status in enumerate(["started", "running", "waiting", "error", "idle", "ended"]):
        event = fleet(pi, "parity", sequence, status, ts=1796000000 + sequence)
        pi.ours(ours, "fleet-event", event)
        pi.theirs(other, "fleet-event", event)
        (a,), (b,) = ours.ours_json("--all"), other.theirs()
        same(a, b, f"pi {status}")
        compared += 1
    return f"{compared} events"


@check("their lock blocks our hook")
def lock(run):
    store, agent = run.store(), run.agents["claude"]
    event = {"session_id": "lock", "cwd": "/srv"}
    agent.ours(store, "UserPromptSubmit", event)
    (path,) = store.files()
    before = path.read_bytes()
    digest = path.name[len("fleet-v1-"):-len(".json")]
    identity = hashlib.sha256(b'["claude","lock"]').hexdigest()
    waits = []
    for name in (f".fleet-v1-{digest}.lock", f".fleet-identity-v1-{identity}.lock"):
        with open(store.sessions / name, "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            began = time.monotonic()
            agent.ours(store, "Stop", event)
            waits.append(time.monotonic() - began)
        need(path.read_bytes() == before, f"{name}: the record was written")
    need(all(0.2 <= wait <= 2 for wait in waits), f"waited {waits} s")
    agent.ours(store, "Stop", event)
    need(path.read_bytes() != before, "once it is let go, nothing was written")
    return ", ".join(f"{wait * 1000:.0f} ms" for wait in waits)


@check("our lock blocks their hook")
def our_lock(_run):
    raise Skip(
        "ours is held for microseconds; the check above shows that it is the same flock"
    )


# Which files are records: the departures.


class Int(int):
    """A whole number with the digits that stood for it."""


class Str(str):
    """A text that knows whether it stood with escapes."""


class Pairs(list):
    """An object as its members, the repeated ones too."""

    def get(self, key, default=None):
        return dict(self).get(key, default)


class Tolerant(json.JSONDecoder):
    """A decoder that keeps what a Python value no longer shows."""

    def __init__(self):
        self.constants = 0
        super().__init__(
            object_pairs_hook=Pairs, parse_int=self.integer, parse_constant=self.constant
        )

        def string(text, end, strict=True):
            value, after = json.decoder.scanstring(text, end, strict)
            value = Str(value)
            value.escaped = "\\" in text[end:after - 1]
            return value, after

        self.parse_string = string
        self.scan_once = json.scanner.py_make_scanner(self)

    def integer(self, digits):
        value = Int(digits) if len(digits) < 4300 else Int(10 ** 4000)
        value.digits = digits
        return value

    def constant(self, name):
        self.constants += 1
        return float("nan")


def walk(value, depth=1):
    """Every value below a value, with its depth."""
    yield value, depth
    if isinstance(value, Pairs):
        for key, inner in value:
            yield key, depth
            yield from walk(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner, depth + 1)


def lone(text):
    return any("\ud800" <= c <= "\udfff" for c in text)


def repeats(pairs):
    keys = [key for key, _ in pairs]
    return len(keys) != len(set(keys))


@dataclass
class Candidate:
    """A file that may be a record, and what both readers make of it."""

    name: str
    raw: bytes
    marker: str = ""
    links: int = 1
    ours: dict | None = None
    theirs: dict | None = None
    crashed: str = ""

    @cached_property
    def parsed(self):
        """The value as `Tolerant` reads it and whether NaN or the like is in it."""
        decoder = Tolerant()
        try:
            text = self.raw.decode(json.detect_encoding(self.raw), "surrogatepass")
            value = decoder.decode(text)
        except (ValueError, RecursionError):
            return Pairs(), 0
        return (value if isinstance(value, Pairs) else Pairs()), decoder.constants

    @property
    def value(self):
        return self.parsed[0]

    def get(self, key):
        return self.value.get(key)

    def utf8(self):
        try:
            self.raw.decode("utf-8")
        except UnicodeError:
            return False
        return json.detect_encoding(self.raw) == "utf-8"

    def legacy(self):
        return self.get("schema_version") in (None, 0)


@dataclass
class Departure:
    """Where the two are meant to differ: what, who accepts it, whether a file is such a one."""

    name: str
    accepts: str
    holds: Callable
    witnesses: list = field(default_factory=list)
    count: int = 0


def big(c):
    keys = ("started", "sequence", "arrival_sequence")
    return any(isinstance(c.get(k), Int) and c.get(k) >= 2 ** 63 for k in keys)


def minus_zero(c):
    keys = ("schema_version", "ts", "started", "sequence", "focus_target")
    return any(getattr(c.get(k), "digits", "") == "-0" for k in keys)


def repeated_inside(c):
    target = c.get("focus_target")
    inside = [c.get("terminal_env"), target]
    inside += [target.get("terminal_env")] if isinstance(target, Pairs) else []
    return any(isinstance(v, Pairs) and repeats(v) for v in inside)


def odd_pid(c):
    pid = c.get("pid")
    return isinstance(pid, Str) and (pid.escaped or not pid.isascii()) and pid.isdigit()


def ahead(c):
    ts = c.get("ts")
    return isinstance(ts, Int) and time.time() + 290 < ts < 2 ** 63



# THE list. A candidate on which the two disagree must be of exactly one row, and
# its acceptor the one that accepted. Each row's witnesses are in every run.
DEPARTURES = [
    Departure("not UTF-8, or with a byte order mark", "theirs", lambda c: not c.utf8()),
    Departure("NaN or Infinity", "theirs", lambda c: c.parsed[1] > 0),
    Departure("a lone surrogate in an escape", "theirs",
              lambda c: c.utf8() and any(isinstance(v, str) and lone(v) for v, _ in walk(c.value))),
    Departure("a key twice at the top", "theirs", lambda c: repeats(c.value)),
    Departure("a key twice in terminal_env or focus_target", "theirs", repeated_inside),
    Departure("more than 64 keys", "theirs", lambda c: len(dict(c.value)) > 64),
    Departure("more than 16 levels", "theirs",
              lambda c: any(isinstance(v, list) and d > 16 for v, d in walk(c.value))),
    Departure("a whole number over 63 bits", "theirs", big),
    Departure("a whole number written -0", "theirs", minus_zero),
    Departure("a pid in other digits or in escapes", "theirs", odd_pid),
    Departure("a canonical id in escapes", "theirs",
              lambda c: getattr(c.get("canonical_id"), "escaped", False)),
    Departure("a fraction of zero for no focus_target", "theirs",
              lambda c: isinstance(c.get("focus_target"), float) and c.get("focus_target") == 0),
    Departure("a file name that begins with a dot", "theirs", lambda c: c.name.startswith(".")),
    Departure("a file with two names", "theirs", lambda c: c.links > 1),
    Departure("an event over 300 s ahead", "ours", ahead),
    Departure("harness other", "ours", lambda c: not c.legacy() and c.get("harness_id") == "other"),
    Departure("a number of more digits than Python reads", "ours",
              lambda c: any(len(getattr(v, "digits", "")) > 4300 for v, _ in walk(c.value))),
]
ROW = {row.name: row for row in DEPARTURES}


# Records to begin with, and how they are written down.


class Raw:
    """JSON that is written as it stands."""

    def __init__(self, text):
        self.text = text


def record_name(canonical):
    digest = canonical.rsplit(":", 1)[-1] if isinstance(canonical, str) else ""
    return f"fleet-v1-{digest}.json"


def base_record(**changes):
    """A record of schema 1 with the right canonical id."""
    record = {
        "schema_version": 1,
        "record_kind": "session",
        "canonical_id": "",
        "session_id": "s",
        "instance_id": "41:7",
        "harness_id": "claude",
        "agent": "",
        "repo": "lantern",
        "cwd": "/home/dev/src/lantern",
        "pid": "41",
        "process_start": "7",
        "process_identity": "identified",
        "status": "running",
        "detail": "using Bash",
        "tool": "Bash",
        "ts": 1796000000,
        "started": 1796000000,
        "source": "hook",
        "last_event": "claude.tool-use",
        "terminal": "tmux",
        "terminal_env": {"TMUX": "/tmp/tmux-0/default,1,0", "TMUX_PANE": "%3"},
        "focus_target": {
            "kind": "terminal",
            "terminal": "tmux",
            "terminal_env": {"TMUX_PANE": "%3"},
        },
        "sequence": 4,
        "arrival_sequence": 9,
    }
    record.update(changes)
    record["agent"] = changes.get("agent", record["harness_id"])
    fit(record)
    return record


def fit(record):
    """Gives a record the canonical id of its parts, where they can have one."""
    parts = [record.get(k) for k in ("harness_id", "session_id", "instance_id")]
    if all(isinstance(part, str) and not lone(part) for part in parts):
        record["canonical_id"] = canonical_session_id(*parts)


LEGACY = [
    {
        "session_id": "old",
        "agent": "claude",
        "pid": "41",
        "status": "running",
        "ts": 1796000000,
        "cwd": "/srv",
        "repo": "srv",
        "started": 1796000000,
    },
    {
        "schema_version": 0,
        "session_id": "old",
        "agent": "aider",
        "pid": 41,
        "status": "paused",
        "ts": None,
        "canonical_id": "x",
        "instance_id": "y",
        "process_start": "7",
        "process_identity": "z",
        "sequence": 3,
        "arrival_sequence": 2,
        "focus_target": 5,
    },
    {"session_id": "proc-77", "record_kind": "process", "status": "discovered", "terminal_env": {}},
    {"session_id": "old", "source": "process", "pid": ""},
]


def dump(value, ascii_only=True, space=("", "")):
    """Writes a record down; `space` stands before and after each separator."""
    def put(v):
        if isinstance(v, Raw):
            return v.text
        if isinstance(v, dict):
            v = list(v.items())
            return (
                "{"
                + ("%s,%s" % space).join(f"{put(k)}{space[0]}:{space[1]}{put(w)}" for k, w in v)
                + "}"
            )
        if isinstance(v, list):
            return "[" + ("%s,%s" % space).join(map(put, v)) + "]"
        return json.dumps(v, ensure_ascii=ascii_only)
    return put(value).encode("utf-8", "surrogatepass")


# The mutations.

LIMITS = {
    "session_id": 512, "instance_id": 512, "harness_id": 64, "agent": 64, "canonical_id": 128,
    "cwd": 4096, "repo": 512, "detail": 512, "tool": 256, "pid": 32, "terminal": 64,
    "process_start": 128, "process_identity": 16, "last_event": 512, "status": 32, "source": 32,
    "record_kind": 32,
}
KEYS = [*SHARED, *OURS, *DERIVED, "unknown", "", "k\u00e9y"]
STATUSES = [
    "started",
    "running",
    "idle",
    "waiting",
    "error",
    "ended",
    "discovered",
    "paused",
    "Running",
]
# Values on which the two agree, whatever the field.
PLAIN = [
    None, True, False, 0, 1, -1, 41, 2 ** 31, 2 ** 53, 1.0, 0.5, Raw("1e3"), Raw("-0.0"),
    Raw("1e999"), Raw("1E-999"), Raw("01"), Raw("+1"), Raw("1."), Raw(".5"), Raw("-"),
    Raw("0x1"), "", " ", "0", "7", "007", "41", "-1", "+1", "1.0", "x", "unresolved",
    "identified", "process", "session", "terminal", "desktop", "claude", "codex", "pi", "proc-5",
    "a\0b", "a\nb", "\u007f", "\u202e\u200b", "\u00e9", "\U0001f600", Raw('"\\u0061"'),
    Raw('"\\ud83d\\ude00"'), Raw('"\\/"'), Raw('"\\x41"'), Raw('"\\u00"'), Raw('"a\tb"'),
    Raw('"a\x7fb"'), [], {}, [1], ["x"], {"a": "b"}, {"a": 1}, {"": "x"}, [[[[]], {}]],
    Raw("'x'"), Raw(""), Raw("nul"), Raw("True"), Raw("[1,]"), Raw('{"a":1,}'), Raw("1 2"),
    Raw('{"kind":"terminal"}'), Raw('{"kind":"unavailable","kind2":0}'), {"kind": None},
    {"kind": "other"}, {"kind": ""}, {"terminal": None}, {"terminal_env": []},
    {"terminal_env": {"a": "b"}}, {"desktop_target": 5},
]
# Values of which some are departures, in some field.
ODD = [
    Raw("-0"), 2 ** 62, 2 ** 63 - 1, 2 ** 63, 2 ** 64, 10 ** 31, 10 ** 32, 10 ** 40,
    Raw("9" * 5000), Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw('"\\ud800"'),
    Raw('"\\udc00\\ud800"'), Raw('"\\ud800\\u0041"'), Raw('"\\u0034\\u0031"'), "\u0664\u0661",
    "\uff14\uff11", "4\u00b2", "\u00b2", [[]], [[], []], 0.0, Raw("0e5"), "other",
    Raw("[" * 14 + "]" * 14), Raw("[" * 15 + "]" * 15), Raw("[" * 16 + "]" * 16),
    Raw('{"a":' * 15 + "1" + "}" * 15), Raw('{"a":' * 16 + "1" + "}" * 16),
    Raw("[" * 2000 + "]" * 2000), Raw('{"a":"b","a":"c"}'), Raw('{"a":1,"a":"c"}'),
    Raw('{"kind":"x","kind":"desktop"}'),
]


def near(rng, limit):
    """A text as long as its limit, or one byte off, in one of several spellings."""
    length = limit + rng.choice([-1, 0, 1])
    one = rng.choice(["x", "7", "\u00e9", "\u2603", "\U0001f600", "\\", "\n"])
    size = len(one.encode())
    text = one * (length // size) + "y" * (length % size)
    if rng.random() < 0.3:
        return Raw('"' + "".join(escape(c) for c in text) + '"')
    return text


def escape(c):
    units = c.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))


def some_value(rng, key):
    draw = rng.random()
    if draw < 0.25 and key in LIMITS:
        return near(rng, LIMITS[key])
    if draw < 0.3 and key in ("ts", "started", "waiting_since"):
        return int(time.time()) + rng.choice([-400, 0, 200, 400, 10 ** 6])
    if draw < 0.4 and key == "status":
        return rng.choice(STATUSES)
    if draw < 0.5 and key == "schema_version":
        return rng.choice([0, 1, 2, "1", 1.0, True, False])
    return rng.choice(ODD) if draw < 0.55 else rng.choice(PLAIN)


def some_env(rng):
    """A terminal_env at one of its bounds."""
    bound = rng.randrange(5)
    if bound == 0:
        return {f"k{i}": "v" for i in range(rng.choice([31, 32, 33]))}
    if bound == 1:
        return {"k" * rng.choice([127, 128, 129]): "v"}
    if bound == 2:
        return {"\u00e9" * rng.choice([63, 64, 65]): "v"}
    if bound == 3:
        return {"k": near(rng, 1024)}
    return {"k": rng.choice(PLAIN), "l": "v"}


# Mutations that change one thing take any value; those that change several at
# once take plain ones, so that a candidate is of one departure at most.


def put(rng, record):
    key = rng.choice(KEYS if rng.random() < 0.5 else SHARED)
    record[key] = some_value(rng, key)


def put_fitted(rng, record):
    key = rng.choice(["session_id", "instance_id", "harness_id", "session_id", "instance_id"])
    record[key] = some_value(rng, key)
    if key == "harness_id":
        record["agent"] = record[key]
    fit(record)


def put_identity(rng, record):
    """The fields that say whose process it is, against each other."""
    for key, values in (
        ("process_identity", ["identified", "unresolved", "", None, "Unresolved"]),
        ("instance_id", ["unresolved", "41:7", ""]),
        ("pid", ["", "41", 41, "0", 0, "00", "041"]),
        ("process_start", ["", "7"]),
        (
            "focus_target",
            [{"kind": "unavailable"}, {"kind": "terminal"}, {}, None, {"terminal": "tmux"}],
        ),
    ):
        draw = rng.random()
        if draw < 0.6:
            record[key] = rng.choice(values)
        elif draw < 0.75:
            record.pop(key, None)
    fit(record)


def put_env(rng, record):
    env = some_env(rng)
    if rng.random() < 0.5:
        record["terminal_env"] = env
    else:
        record["focus_target"] = {"kind": "unavailable", "terminal_env": env}


def put_target(rng, record):
    target = dict(record["focus_target"]) if isinstance(record.get("focus_target"), dict) else {}
    key = rng.choice(["kind", "terminal", "desktop_target", "terminal_env", "unknown"])
    target[key] = (
        near(rng, {"terminal": 64}.get(key, 512))
        if rng.random() < 0.3
        else rng.choice(PLAIN + ODD[:4])
    )
    record["focus_target"] = target


def drop(rng, record):
    record.pop(rng.choice(list(record)), None)


def several(rng, record):
    for _ in range(rng.randrange(2, 5)):
        key = rng.choice(list(record))
        if rng.random() < 0.3 or key in (
            "session_id",
            "instance_id",
            "harness_id",
            "canonical_id",
            "agent",
        ):
            continue
        record[key] = rng.choice(PLAIN)


def many_keys(rng, record):
    goal = rng.choice([62, 63, 64, 65, 70])
    for i in range(goal - len(record)):
        record[f"k{i}"] = i


def reorder(rng, record):
    items = list(record.items())
    rng.shuffle(items)
    record.clear()
    record.update(items)


STRUCTURAL = (
    [put] * 10
    + [put_fitted] * 4
    + [put_identity] * 4
    + [put_env, put_env, put_target, put_target, drop, drop, several, several, many_keys, reorder]
)


def repeat_key(rng, raw):
    """Writes a member a second time, the key perhaps in escapes."""
    value = json.loads(raw)
    key = rng.choice(list(value))
    name = "".join(map(escape, key)) if rng.random() < 0.5 else key
    extra = f'"{name}":{json.dumps(rng.choice([value[key], 5, "x"]))}'.encode()
    return raw[:-1] + b"," + extra + b"}"


def escape_key(rng, raw):
    """Writes a key in escapes."""
    key = rng.choice(list(json.loads(raw)))
    return raw.replace(f'"{key}":'.encode(), f'"{"".join(map(escape, key))}":'.encode(), 1)


def fill(rng, raw):
    """As long as a record may be, or one byte off."""
    length = 65536 + rng.choice([-1, 0, 1])
    if rng.random() < 0.5:
        return raw + b" " * (length - len(raw))
    room = length - len(raw) - len(b',"fill":""')
    return raw[:-1] + b',"fill":"' + b"x" * room + b'"}'


def around(rng, raw):
    before = rng.choice(
        [b"", b" ", b"\n", b"\t\r", b"\xef\xbb\xbf", b"\0", b"\x0b", b"\xc2\xa0", b"[", b"1"]
    )
    after = rng.choice([b"", b" \r\n\t", b"\0", b"}", b",", b"{}", b"\x1a", b"\xe2\x80\xa8", b"//"])
    return before + raw + after


def encode(rng, raw):
    return raw.decode("utf-8", "surrogatepass").encode(
        rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1"]),
        "replace",
    )


def flip(rng, raw):
    at = rng.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1:]


def insert(rng, raw):
    at = rng.randrange(len(raw) + 1)
    extra = rng.choice(
        [
            bytes([rng.randrange(256)]),
            b'"',
            b"\\",
            b",",
            b"}",
            b"{",
            b" ",
            b"0",
            b"-",
            b"\\u0000",
            b"\\ud800",
            b"\xed\xa0\x80",
            b"\xc3\xa9",
            b"\xf4\x90\x80\x80",
            b"\xc0\x80",
            b"1e5",
            b"\n",
        ]
    )
    return raw[:at] + extra + raw[at:]


def remove(rng, raw):
    at = rng.randrange(len(raw))
    return raw[:at] + raw[at + rng.choice([1, 1, 1, 2, 5, 40]):]


def truncate(rng, raw):
    return raw[:rng.randrange(len(raw))]


def copy(rng, raw):
    at, to = sorted(rng.randrange(len(raw)) for _ in range(2))
    return raw[:to] + raw[at:to] + raw[to:]


BYTES = (
    [repeat_key, escape_key, escape_key, fill, around, around, encode]
    + 6 * [flip, insert, remove]
    + [truncate, truncate, copy]
)


def settled(record):
    """A record without what another run would write otherwise."""
    process = f"{record['pid']}:{record['process_start']}"
    for key, value in (("pid", "41"), ("process_start", "7")):
        record[key] = record[key] and value
    if record["instance_id"] == process:
        record["instance_id"] = "41:7"
    for key in ("ts", "started", "waiting_since", "ts_ms", "boot_ms", "mono_ms", "status_ms"):
        if key in record:
            record[key] = 5000 if key in ("boot_ms", "mono_ms") else 1796000000
    if "boot_id" in record:
        record["boot_id"], record["pid_ns"] = "6b366ed5-86a5-4b68-93a5-a61a03029aea", "4026531836"
    if record.get("record_kind") == "process":
        record.update(session_id="proc-41", detail="PID 41", cwd="/srv", repo="srv")
    fit(record)
    return record


class Forge:
    """Makes candidates out of records."""

    def __init__(self, rng, corpus):
        self.rng, self.made = rng, 0
        bases = {dump(settled(json.loads(raw))): None for raw in corpus}
        self.bases = [json.loads(raw) for raw in bases] + [base_record(), *LEGACY, *LEGACY]

    def begin(self, base):
        """A copy of a record with ids and a marker of its own, and a name for its file."""
        self.made += 1
        record = json.loads(json.dumps(base))
        # With a sum, so that no slip makes one marker another's.
        marker = f"m{self.made:06}{hashlib.sha256(b'%d' % self.made).hexdigest()[:8]}"
        record["_n"] = marker
        if record.get("schema_version", 0) == 1:
            record["session_id"] += f"-{self.made}"
            fit(record)
        return record, marker

    def name(self, record, marker):
        """The name under which both would look for the record."""
        schema, canonical = record.get("schema_version", 0), record.get("canonical_id")
        if schema == 1 and not isinstance(schema, bool):
            name = record_name(canonical)
            return (
                name if re.fullmatch(r"[a-z0-9.-]+", name) and len(name) < 200 else record_name("x")
            )
        return self.rng.choice([f"old-{marker}.json", f"proc-{marker}.json"])

    def candidate(self):
        rng = self.rng
        record, marker = self.begin(rng.choice(self.bases))
        name = self.name(record, marker)
        structural = rng.random() < 0.6
        if structural:
            rng.choice(STRUCTURAL)(rng, record)
            record["_n"] = marker
            name = self.name(record, marker)
        space = rng.choice([("", "")] * 4 + [("", " "), (" ", "\n"), ("\t", "\r\n  ")])
        raw = dump(record, rng.random() < 0.6, space)
        if not structural:
            raw = rng.choice(BYTES)(rng, raw)
        return Candidate(name, raw, marker)

    def witness(self, raw=None, **changes):
        """A record that is fine but for one thing."""
        record, marker = self.begin(base_record())
        record.update(changes)
        fit(record)
        made = Candidate(record_name(record["canonical_id"]), dump(record), marker)
        if raw:
            made.raw = raw(made.raw)
        return made

    def witnesses(self):
        """One candidate at least for each departure, and some on which both agree."""
        now = int(time.time())
        old, marker = self.begin(LEGACY[0])
        hidden = Candidate(f".old-{marker}.json", dump(old), marker)
        linked = self.witness()
        linked.links = 2
        deep = Raw("[" * 16 + "]" * 16)
        twice = Raw('{"a":1,"a":"b"}')
        for name, made in [
            (
                "not UTF-8, or with a byte order mark",
                [
                    self.witness(lambda raw: b"\xef\xbb\xbf" + raw),
                    self.witness(lambda raw: raw.decode().encode("utf-16")),
                    self.witness(lambda raw: raw.decode().encode("utf-32-le")),
                    self.witness(lambda raw: raw[:-1] + b',"u":"\xed\xa0\x80"}'),
                ],
            ),
            ("NaN or Infinity", [self.witness(u=Raw("NaN")), self.witness(u=[Raw("-Infinity")])]),
            (
                "a lone surrogate in an escape",
                [
                    self.witness(u=Raw('"\\ud800"')),
                    self.witness(u={"\udc00": 1}),
                    self.witness(boot_id="\udfff"),
                ],
            ),
            (
                "a key twice at the top",
                [
                    self.witness(lambda raw: raw[:-1] + b',"tool":"Bash"}'),
                    self.witness(lambda raw: raw[:-1] + b',"too\\u006c":"Bash"}'),
                    self.witness(lambda raw: raw[:-1] + b',"u":1,"u":1}'),
                ],
            ),
            (
                "a key twice in terminal_env or focus_target",
                [
                    self.witness(terminal_env=twice),
                    self.witness(focus_target=Raw('{"kind":5,"kind":"terminal"}')),
                    self.witness(focus_target={"terminal_env": twice}),
                ],
            ),
            ("more than 64 keys", [self.witness(**{f"u{i}": i for i in range(60)})]),
            (
                "more than 16 levels",
                [self.witness(u=deep), self.witness(u=Raw('{"a":' * 16 + "1" + "}" * 16))],
            ),
            (
                "a whole number over 63 bits",
                [
                    self.witness(started=2**63),
                    self.witness(sequence=10**30),
                    self.witness(arrival_sequence=2**64),
                ],
            ),
            (
                "a whole number written -0",
                [
                    self.witness(ts=Raw("-0")),
                    self.witness(started=Raw("-0")),
                    self.witness(sequence=Raw("-0")),
                    self.witness(focus_target=Raw("-0")),
                    Candidate(
                        f"old-z{marker}.json",
                        dump({**old, "schema_version": Raw("-0"), "_n": "z" + marker}),
                        "z" + marker,
                    ),
                ],
            ),
            (
                "a pid in other digits or in escapes",
                [self.witness(pid="\u0664\u0661"), self.witness(pid=Raw('"\\u0034\\u0031"'))],
            ),
            (
                "a canonical id in escapes",
                [self.witness(lambda raw: raw.replace(b'"fleet:', b'"fleet\\u003a'))],
            ),
            (
                "a fraction of zero for no focus_target",
                [self.witness(focus_target=0.0), self.witness(focus_target=Raw("0e7"))],
            ),
            ("a file name that begins with a dot", [hidden]),
            ("a file with two names", [linked]),
            ("an event over 300 s ahead", [self.witness(ts=now + 400), self.witness(ts=2**63 - 1)]),
            ("harness other", [self.witness(harness_id="other", agent="other")]),
            ("a number of more digits than Python reads", [self.witness(u=Raw("9" * 5000))]),
        ]:
            ROW[name].witnesses = made
        agreed = [
            self.witness(),
            self.witness(u=Raw("[" * 15 + "]" * 15)),
            self.witness(ts=now + 200),
            self.witness(**{f"u{i}": i for i in range(64 - 25)}),
            self.witness(u=Raw("1e999")),
            self.witness(u="a\0b"),
            self.witness(started=2**63 - 1),
            self.witness(focus_target=[]),
            self.witness(
                session_id=f"proc-{self.made}",
                instance_id="unresolved",
                pid="",
                process_start="",
                process_identity="unresolved",
                focus_target={},
                record_kind="process",
            ),
            self.witness(u=twice),
            self.witness(ts=None),
            self.witness(pid="007", process_start=""),
            *(
                Candidate(
                    f"old-{i}{marker}.json", dump({**one, "_n": f"{i}{marker}"}), f"{i}{marker}"
                )
                for i, one in enumerate(LEGACY)
            ),
        ]
        return agreed, [c for row in DEPARTURES for c in row.witnesses]


# What both make of a candidate.

BATCH = 400


def judge(run, candidates):
    """Lets both readers read all candidates, some hundreds in a directory."""
    rest = list(candidates)
    while rest:
        store, batch, later, taken = run.store(), [], [], set()
        for c in rest:
            fits = len(batch) < BATCH and c.name not in taken
            (batch if fits else later).append(c)
            taken.add(c.name)
        rest = later
        for c in batch:
            path = store.put(c.name, c.raw)
            if c.links > 1:
                os.link(path, store.sessions / f"{c.name}.link")
        judge_batch(run, store, batch)
        shutil.rmtree(store.root)


def judge_batch(run, store, batch):
    found = {}
    for line in store.ours("--all"):
        for marker in re.findall(rb'"_n":"([a-z0-9]+)"', line):
            found[marker.decode()] = line
    for c in batch:
        try:
            c.theirs = their_look(store, c.name)
        except Exception as error:
            c.crashed = f"{type(error).__name__}: {error}"
        marked = re.search(rb'"_n"[ \t\r\n]*:[ \t\r\n]*"' + c.marker.encode() + b'"', c.raw)
        line = found.get(c.marker) if marked else alone(run, c)
        c.ours = None if line is None else json.loads(line, parse_int=whole)


def whole(digits):
    return int(digits) if len(digits) <= 4300 else digits


def their_look(store, name):
    """What their reader lists of one file: it does not say which file a record is of."""
    theirs.FLEET_DIR = store.sessions
    every = theirs._iter_record_paths
    paths = (
        [path for path in every() if path.name == name]
        if name.startswith(".")
        else [store.sessions / name]
    )
    theirs._iter_record_paths = lambda: paths
    try:
        return next(iter(theirs.read_stored_sessions()), None)
    finally:
        theirs._iter_record_paths = every


def alone(run, c):
    """What ours lists of a candidate whose marker cannot be seen."""
    store = run.store()
    store.put(c.name, c.raw)
    lines = store.ours("--all")
    shutil.rmtree(store.root)
    need(len(lines) <= 1, f"{len(lines)} sessions of one file: {c.raw!r}")
    return lines[0] if lines else None


def differing(c):
    """In which fields the two read the same record otherwise."""
    drop = {*DERIVED, *OURS, "_legacy", "_process"}
    ours = {k: v for k, v in c.ours.items() if k not in drop}
    others = {k: v for k, v in c.theirs.items() if k not in drop}
    # No value and null are the same, and so is every way to say no target.
    for side in (ours, others):
        for key in ("started", "sequence", "arrival_sequence"):
            if side.get(key) is None:
                side.pop(key, None)
        if not isinstance(side.get("focus_target"), dict):
            side.pop("focus_target", None)
    keys = sorted(ours.keys() | others.keys(), key=str)
    return [k for k in keys if repr(ours.get(k, "-")) != repr(others.get(k, "-"))]


def shown(c):
    raw = c.raw if len(c.raw) < 3000 else c.raw[:1500] + b" ... " + c.raw[-1500:]
    return f"{c.name} {raw!r}"


@check("both accept the same files")
def mutations(run):
    forge = Forge(run.rng("mutations"), run.corpus)
    agreed, witnesses = forge.witnesses()
    mutated = [forge.candidate() for _ in range(run.count)]
    every = agreed + witnesses + mutated
    judge(run, every)
    bad, both, crashes = [], 0, 0
    for c in agreed:
        if c.ours is None or c.theirs is None:
            bad.append(
                f"not accepted by {'ours' if c.ours is None else 'theirs'}: {shown(c)}"
            )
    for row in DEPARTURES:
        for c in row.witnesses:
            who = {(True, False): "ours", (False, True): "theirs"}.get(
                (c.ours is not None, c.theirs is not None)
            )
            if who != row.accepts or not row.holds(c):
                bad.append(f"no witness of '{row.name}', {who} accepts: {shown(c)}")
    for c in every:
        crashes += bool(c.crashed)
        accepts = [side for side in ("ours", "theirs") if getattr(c, side) is not None]
        both += len(accepts) == 2
        if len(accepts) != 1:
            continue
        rows = [row for row in DEPARTURES if row.accepts == accepts[0] and row.holds(c)]
        if len(rows) == 1:
            rows[0].count += 1
        else:
            names = ", ".join(repr(row.name) for row in rows) or "no row"
            bad.append(f"only {accepts[0]} accepts, of {names}: {shown(c)}")
    run.judged = every
    for row in DEPARTURES:
        print(f"   only {row.accepts:6} {row.count:5}  {row.name}")
    need(not bad, f"{len(bad)} unexplained\n   " + "\n   ".join(bad[:run.most]))
    note = f", their reader crashed on {crashes}" if crashes else ""
    return f"{len(every)} files, {both} accepted by both{note}"


# Values that the two read otherwise, although both accept the record.
VALUES = {
    "a pid with leading zeros or over 64 bits": lambda c, k: k == "pid"
    and (c.theirs[k].startswith("0") or int(c.theirs[k]) >= 2**64),
    # The reference writes none: a schema 1 process record has its pid.
    "a pid taken from the session id in schema 1": lambda c, k: (
        k == "pid"
        and not c.legacy()
        and c.ours[k] == ""
        and c.theirs["session_id"] == f"proc-{c.theirs[k]}"
    ),
}


@check("both read the same values")
def values(run):
    judged = [c for c in getattr(run, "judged", []) if c.ours is not None and c.theirs is not None]
    if not judged:
        raise Skip("no candidates")
    bad, counts = [], dict.fromkeys(VALUES, 0)
    for c in judged:
        for key in differing(c):
            names = [name for name, holds in VALUES.items() if holds(c, key)]
            if names:
                counts[names[0]] += 1
            else:
                bad.append(
                    f"{key}: {c.ours.get(key, '-')!r}, {c.theirs.get(key, '-')!r}: {shown(c)}"
                )
    for name, count in counts.items():
        print(f"   otherwise   {count:5}  {name}")
    need(not bad, f"{len(bad)} unexplained\n   " + "\n   ".join(bad[:run.most]))
    need(all(counts.values()), "a departure that nothing bears out")
    return f"{len(judged)} records"


@check("both hide the same records")
def hiding(run):
    rng, compared = run.rng("hiding"), 0
    for _ in range(60):
        store = run.store()
        for i in range(rng.randrange(2, 14)):
            harness, session = rng.choice(["claude", "codex"]), rng.choice(["a", "b", "proc-41"])
            pid, start = rng.choice([("", ""), ("41", ""), ("41", "7"), ("42", "7")])
            kind = rng.choice([{}, {"record_kind": "process"}, {"source": "process"}])
            if session == "proc-41":
                pid = pid or "41"
            if rng.random() < 0.4:
                record = {"session_id": session, "agent": harness, "pid": pid, "n": i, **kind}
                name = f"{rng.choice(['old', 'proc'])}-{i}.json"
            else:
                instance = "unresolved" if not pid else f"{pid}:{start}"
                record = base_record(
                    session_id=session,
                    harness_id=harness,
                    pid=pid,
                    process_start=start,
                    instance_id=instance,
                    process_identity="identified" if pid else "unresolved",
                    focus_target={},
                    n=i,
                    record_kind="session",
                )
                record.update(kind)
                name = record_name(record["canonical_id"])
            store.put(name, dump(record))
        ours = sorted(r["n"] for r in store.ours_json())
        others = sorted(r["n"] for r in store.theirs(hidden=False))
        files = [p.read_bytes() for p in store.files()]
        need(ours == others, f"ours shows {ours}, theirs {others} of {files}")
        compared += len(files)
        shutil.rmtree(store.root)
    return f"{compared} records in 60 stores"


@check("our hook goes on with records of other programs")
def merging(run):
    """Their validator accepts what our hook makes of a stored record with odd fields."""
    agent, store = run.agents["claude"], run.store()
    owner = {"pid": str(agent.pid), "process_start": agent.start}
    instance = f"{agent.pid}:{agent.start}"
    kept = [c for c in getattr(run, "judged", []) if c.ours is not None and c.theirs is not None]
    kept = [c for c in kept if c.ours.get("schema_version") == 1]
    run.rng("merging").shuffle(kept)
    if not kept:
        raise Skip("no candidates")
    for c in kept[:200]:
        record = {
            **json.loads(c.raw),
            "session_id": "merge",
            "instance_id": instance,
            "harness_id": "claude",
            "agent": "claude",
            "process_identity": "identified",
            **owner,
        }
        # With a sequence it would take none of a native event's, in theirs too.
        record.pop("sequence", None)
        record.pop("boot_ms", None)
        # What a bridge brought counts as absent here.
        record.pop("bridge", None)
        record.pop("host", None)
        fit(record)
        store.wipe()
        path = store.put(record_name(record["canonical_id"]), dump(record))
        if not store.theirs() or not store.ours("--all"):
            continue
        told = agent.strict(store, "UserPromptSubmit", {"session_id": "merge", "cwd": "/srv"})
        need(
            told["outcome"] == "written" and told["status"] == "running",
            f"{told} over {dump(record)!r}",
        )
        (after,) = same_lists(store, f"after {dump(record)!r}").values()
        arrivals = record.get("arrival_sequence") or 0
        need(after["arrival_sequence"] == arrivals + 1, f"{after} over {dump(record)!r}")
        # A key that it does not know is kept while there is room for it.
        stored, crowded = json.loads(path.read_bytes()), len(dump(record)) > 64000
        foreign = [k for k in record if k not in {*SHARED, *OURS, *DERIVED}]
        lost = [k for k in foreign if stored.get(k, "-") != record[k]]
        need(not lost or len(stored) == 64 or crowded, f"lost {lost} of {dump(record)!r}")
    return f"{min(len(kept), 200)} records"


class Run:
    """What the checks share."""

    def __init__(self, world, seed, count):
        self.world, self.seed, self.count = world, seed, count
        self.most = int(os.environ.get("INTEROP_SHOW", "5"))
        self.corpus = []
        self.agents = {name: world.agent(name) for name in ("claude", "codex", "pi")}

    def store(self):
        return self.world.store()

    def rng(self, name):
        return random.Random(f"{self.seed} {name}")


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: check.py BINARY [SEED [COUNT]]")
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 4000
    world = World(sys.argv[1])
    passed = failed = 0
    try:
        run = Run(world, seed, count)
        for name, function in CHECKS:
            began = time.monotonic()
            try:
                told = function(run)
                passed += 1
                print(f"ok {name}: {told} ({time.monotonic() - began:.1f} s)", flush=True)
            except Skip as why:
                print(f"skipped {name}: {why}", flush=True)
            except Exception as error:
                failed += 1
                kind = "" if isinstance(error, Wrong) else f"{type(error).__name__}: "
                print(f"FAILED {name} (seed {seed}): {kind}{str(error)[:20000]}", flush=True)
    finally:
        world.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
