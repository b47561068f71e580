// The queue: the same in every plugin.
//
// Events wait in it, LIMIT at most, and one hook runs at a time, so that the
// records see them in their order. Nothing in the harness waits for a hook, but
// at the very end. When the queue is full, the oldest noise goes first, which is
// the turn's progress and its tools; then the oldest event of a session that has
// a later one there.

const LIMIT = 256;
/** Milliseconds that a hook is given. */
const PATIENCE = 2000;
/** Milliseconds between two tries of a program that is not there. */
const QUIET = 60000;
/** Milliseconds that the harness's end is held up, all sessions together. */
const FAREWELL = 500;

const GONE = new Set(["ENOENT", "EACCES", "ENOTDIR", "ENOEXEC"]);

/** Whether this agent is not to be reported. */
const OFF = process.env.TONGS_AGENTS_IGNORE === "1";

/** What outlives a reload of this file within one process. */
const shared = (globalThis[Symbol.for(`tongs.plugin.1.${HARNESS}`)] ??= {
  queue: [],
  running: undefined, // the event whose hook runs, with its process
  missing: false, // the program was not there when last tried
  live: new Set(), // sessions that have not ended, the last heard of last
  ending: new Set(), // sessions whose end is on its way
});

/**
 * Puts an event into the queue. `kind` is "state", "end" for a session's last
 * one, or "noise" for one that a later event makes up for.
 */
function report(session, name, payload, kind = "state") {
  const event = { session, name, kind, payload: JSON.stringify(payload) };
  shared.live.delete(session);
  (kind === "end" ? shared.ending : shared.live).add(session);
  bound(shared.live, 1000);
  if (shared.missing) {
    if (kind === "noise") return;
    shared.queue = shared.queue.filter((e) => e.session !== session);
  }
  if (shared.queue.length >= LIMIT && !makeRoom(event)) return;
  shared.queue.push(event);
  next();
}

/** Drops what can best be spared; false where that is the new event itself. */
function makeRoom(event) {
  const queue = shared.queue;
  let at = queue.findIndex((e) => e.kind === "noise");
  if (at < 0 && event.kind === "noise") return false;
  const isLast = (e, i) => e.session !== event.session && !queue.some((l, j) => j > i && l.session === e.session);
  if (at < 0) at = queue.findIndex((e, i) => !isLast(e, i));
  queue.splice(Math.max(at, 0), 1);
  return true;
}

/** Runs the hook of the next event, unless one runs. */
function next() {
  if (shared.running || shared.missing) return;
  const event = shared.queue.shift();
  if (!event) return;
  shared.running = event;
  let timer;
  const settle = (error) => {
    if (shared.running !== event) return;
    shared.running = undefined;
    clearTimeout(timer);
    if (GONE.has(error?.code)) return waitForProgram(event);
    if (event.kind === "end") shared.ending.delete(event.session);
    next();
  };
  try {
    // A group of its own: what the terminal sends to the harness's is not for it.
    const child = spawn(HOOK, [HARNESS, event.name], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    event.child = child;
    timer = setTimeout(() => {
      child.kill("SIGKILL");
      settle();
    }, PATIENCE);
    child.on("error", settle);
    child.on("exit", () => settle());
    child.stdin?.on("error", () => {});
    child.stdin?.end(event.payload);
    // None of this keeps the harness from ending.
    for (const handle of [timer, child, child.stdin]) handle?.unref?.();
  } catch (error) {
    settle(error);
  }
}

/** The program is not there: what is newest of each session waits for it. */
function waitForProgram(event) {
  const newest = new Map();
  for (const e of [event, ...shared.queue]) {
    if (e.kind !== "noise") newest.set(e.session, e);
  }
  shared.queue = [...newest.values()];
  shared.missing = true;
  setTimeout(() => {
    shared.missing = false;
    next();
  }, QUIET).unref?.();
}

/**
 * Says that these sessions are over, before the process is: a later hook would
 * not find the process among its ancestors. It is the one thing that waits.
 */
function endNow(sessions) {
  const until = performance.now() + FAREWELL;
  for (const session of sessions) {
    shared.live.delete(session);
    shared.ending.delete(session);
    shared.queue = shared.queue.filter((e) => e.session !== session);
    // It must not come after the end.
    if (shared.running?.session === session) shared.running.child?.kill("SIGKILL");
    const timeout = Math.floor(until - performance.now());
    if (timeout <= 0 || shared.missing) continue;
    const { name, payload } = farewell(session);
    spawnSync(HOOK, [HARNESS, name], {
      input: JSON.stringify(payload),
      stdio: ["pipe", "ignore", "ignore"],
      timeout,
      killSignal: "SIGKILL",
    });
  }
}

/** The same function, which never throws and gives nothing back. */
function safely(f) {
  return (...args) => {
    try {
      f(...args);
    } catch {
      // The harness comes first.
    }
  };
}

/** Keeps a map or a set small: the oldest goes. */
function bound(all, max) {
  if (all.size > max) all.delete(all.keys().next().value);
}

/** Text of at most this many characters, without halves of any. */
function short(value, max) {
  if (typeof value !== "string") return undefined;
  return value.slice(0, max).replace(/[\ud800-\udfff]/gu, "");
}

/** A text that is an id, or nothing. */
function idOf(value) {
  return typeof value === "string" && value !== "" && value.length <= 256 ? value : undefined;
}

/** What the promise gives, or nothing after a second. */
function soon(promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, 1000);
    timer.unref?.();
  });
  return Promise.race([Promise.resolve(promise).catch(() => {}), late]).finally(() => clearTimeout(timer));
}

shared.leave = safely(() => endNow([...shared.live, ...shared.ending].reverse()));
if (!OFF && !shared.waits) {
  shared.waits = true;
  process.on("exit", () => shared.leave());
}
