// Amp. It asks its plugins before every call of a tool, and whoever listens must
// decide; so this does not listen there, and a tool is seen when it is done.

export const description = "Tells tongs which threads work and which are done. Decides nothing.";

/** By thread: whether it is a subagent's, and whether its turn runs. */
const threads = (shared.threads ??= new Map());

function envelope(id, event, { tool, status } = {}) {
  const data = { thread: { id }, tool: short(tool, 100), status: short(status, 100) };
  return { event, data, cwd: short(threads.get(id)?.cwd, 4096) };
}

function farewell(id) {
  return { name: "session.end", payload: envelope(id, "session.end") };
}

function say(id, event, more, kind) {
  report(id, event, envelope(id, event, more), kind);
}

const ACTS = {
  // It comes at every change of the thread that is looked at, too.
  "session.start": (id, thread) => {
    if (!thread.started) say(id, "session.start");
    thread.started = true;
  },
  "agent.start": (id, thread) => {
    thread.working = true;
    say(id, "agent.start");
  },
  "tool.result": (id, thread, { tool }) => {
    // The beginning of a turn may come before the plugins are there.
    if (!thread.working) ACTS["agent.start"](id, thread);
    say(id, "tool.result", { tool }, "noise");
  },
  "agent.end": (id, thread, { status }) => {
    thread.working = false;
    say(id, "agent.end", { status });
  },
};

function directory(amp) {
  try {
    const path = amp.helpers.filePathFromURI(amp.system.workspaceRoot);
    if (typeof path === "string" && path !== "") return path;
  } catch {
    // Not of this build, or there is no workspace.
  }
  return process.cwd();
}

/** A thread that is seen for the first time; one of a subagent's is left alone. */
async function meet(id, ctx, cwd) {
  const thread = { cwd };
  threads.set(id, thread);
  bound(threads, 1000);
  thread.parent = idOf(await soon((async () => ctx?.thread?.parentThreadID?.())()));
  return thread;
}

export default function tongs(amp) {
  if (OFF || typeof amp?.on !== "function" || amp.system?.executor?.kind === "remote") return;
  const cwd = directory(amp);
  const me = {};
  shared.owner = me;

  for (const id of shared.closed ?? []) say(id, "session.start");
  shared.closed = undefined;

  for (const [type, act] of Object.entries(ACTS)) {
    const heard = safely((event, ctx) => {
      const id = idOf(event?.thread?.id ?? ctx?.thread?.id);
      if (!id || shared.owner !== me) return;
      const step = async () => {
        const thread = threads.get(id) ?? (await meet(id, ctx, cwd));
        if (!thread.parent) act(id, thread, event ?? {});
      };
      shared.chain = (shared.chain ?? Promise.resolve()).then(step).catch(() => {});
    });
    safely(() => amp.on(type, heard))();
  }

  // At the end of the program, and before the plugins are loaded anew.
  safely(() =>
    amp.onDispose?.(
      safely(() => {
        shared.closed = [...shared.live];
        shared.leave();
      }),
    ),
  )();
}
