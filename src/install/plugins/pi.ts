// Pi and its forks. An event that a build does not have never comes.

/** Milliseconds until a turn that nothing ended is taken for over. */
const GRACE = 1000;

function envelope(id, cwd, { type, reason, toolName }) {
  return {
    event: { type, reason: short(reason, 100), toolName: short(toolName, 100) },
    ctx: { sessionId: id, cwd: short(cwd, 4096) },
  };
}

function farewell(id) {
  const type = "session_shutdown";
  return { name: type, payload: envelope(id, undefined, { type }) };
}

function tell(id, cwd, event, kind) {
  shared.session = id;
  report(id, event.type, envelope(id, cwd, event), kind);
}

/**
 * A process has one session. An extension may hold others within it, and their
 * copies of this plugin are not to speak: the first that does is the session's,
 * until it is shut down or another has the same session.
 */
function isOurs(me, id) {
  if (shared.owner !== undefined && shared.owner !== me && shared.session !== id) return false;
  shared.owner = me;
  return true;
}

export default function tongs(pi) {
  if (OFF || typeof pi?.on !== "function") return;
  const me = {};
  let grace;

  const on = (type, act) => {
    const heard = safely((event, ctx) => {
      const id = idOf(ctx?.sessionManager?.getSessionId?.());
      if (!id || !isOurs(me, id)) return;
      clearTimeout(grace);
      act(id, ctx.cwd, event ?? {}, ctx);
    });
    safely(() => pi.on(type, heard))();
  };
  const pass = (kind, ...types) => {
    for (const type of types) on(type, (id, cwd, event) => tell(id, cwd, { ...event, type }, kind));
  };

  const start = (id, cwd, reason) => {
    // After a reload the session goes on; if its end was said, it starts again.
    const again = reason === "reload" && shared.ended === id ? "resume" : reason;
    shared.ended = undefined;
    tell(id, cwd, { type: "session_start", reason: again });
  };
  // Some builds say it twice.
  on("session_start", (id, cwd, { reason }) => {
    if (me.started !== id) start(id, cwd, reason);
    me.started = id;
  });
  // Older builds and forks go from one session to another so.
  for (const type of ["session_switch", "session_fork", "session_branch"]) {
    on(type, (id, cwd, { reason }) => {
      if (id !== shared.session) start(id, cwd, reason);
    });
  }

  pass("state", "before_agent_start", "session_before_compact", "ui_prompt_start", "ui_prompt_end");
  pass("noise", "agent_start", "turn_start", "turn_end", "tool_execution_start", "tool_execution_end");

  on("agent_settled", (id, cwd) => {
    shared.settles = true;
    tell(id, cwd, { type: "agent_settled" });
  });
  // A build without that event, and a compaction that the user asked for, end
  // when the agent has been idle for a while.
  const watch = (id, cwd, ctx) => {
    grace = setTimeout(
      safely(() => {
        if (shared.owner !== me || shared.session !== id) return;
        if (ctx.isIdle?.() === false || ctx.hasPendingMessages?.()) watch(id, cwd, ctx);
        else tell(id, cwd, { type: "agent_settled" });
      }),
      GRACE,
    );
    grace.unref?.();
  };
  on("agent_end", (id, cwd, event, ctx) => {
    tell(id, cwd, { type: "agent_end" }, "noise");
    if (!shared.settles && !event.willContinue && !event.willRetry) watch(id, cwd, ctx);
  });
  on("session_compact", (id, cwd, event, ctx) => {
    tell(id, cwd, { type: "session_compact" }, "noise");
    if (!event.willRetry) watch(id, cwd, ctx);
  });
  on("session_compact_failed", (id, cwd, _event, ctx) => watch(id, cwd, ctx));

  on("session_shutdown", (id, cwd, { reason }) => {
    shared.owner = me.started = undefined;
    if (reason === "reload") return;
    shared.ended = id;
    tell(id, cwd, { type: "session_shutdown" }, "end");
  });
}
