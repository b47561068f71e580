// OpenCode, both generations. 1.x calls the functions of the object that
// `TongsPlugin` gives, one object for each directory that it serves; 2.x calls
// `setup`, once for each directory too, and every one of them gets the events of
// all. What is not in ACTS is not looked at.

/** By session id: its parent, directory, title, and how far its turn is. */
const sessions = (shared.sessions ??= new Map());
/** Ids of the last events: there may be several of us. */
const seen = (shared.seen ??= new Set());
/** By directory, the newest of us there. */
const owners = (shared.owners ??= new Map());
/** By directory, the sessions whose end was said when it was closed. */
const closed = (shared.closed ??= new Map());
/** By call, the name of the tool (2.x tells it before the call only). */
const tools = (shared.tools ??= new Map());

function session(id) {
  let known = sessions.get(id);
  if (!known) {
    known = { asks: new Map() };
    sessions.set(id, known);
    bound(sessions, 1000);
  }
  return known;
}

/** Takes what is said of a session; says whether that is news. */
function learn(known, info) {
  const { cwd, title } = known;
  known.learnt = true;
  known.parent ??= idOf(info?.parentID);
  known.cwd = short(info?.directory ?? info?.location?.directory, 4096) ?? cwd;
  known.title = short(info?.title, 200) ?? title;
  return known.cwd !== cwd || known.title !== title;
}

/** The session that the user sees: a subagent's is its parent's. */
function root(id) {
  for (let steps = 0; steps < 16; steps++) {
    const parent = sessions.get(id)?.parent;
    if (!parent) break;
    id = parent;
  }
  return id;
}

function envelope(id, name, { error, status, tool, agent } = {}) {
  const { cwd, title } = session(id);
  return {
    type: name,
    properties: {
      sessionID: id,
      info: title === undefined ? undefined : { title },
      error: error === undefined ? undefined : { name: error },
      status: status === undefined ? undefined : { type: status },
    },
    input: tool === undefined ? undefined : { tool },
    agent_id: agent,
    cwd,
  };
}

function say(id, name, more, kind) {
  report(id, name, envelope(id, name, more), kind);
}

function farewell(id) {
  return { name: "session.deleted", payload: envelope(id, "session.deleted") };
}

/** A turn begins. */
function begin(id, known, name) {
  if (known.parent) return;
  Object.assign(known, { busy: true, error: undefined });
  known.asks.clear();
  say(id, name);
}

/** The agent works, which is said where it is news. */
function work(id, known) {
  known.error = undefined;
  if (known.parent || known.busy) return;
  known.busy = true;
  say(id, "session.status", { status: "busy" });
}

/** The turn is over: once, however often and in how many ways that is told. */
function rest(id, known, name, error) {
  settle(id);
  if (known.parent || known.busy === false) return;
  known.busy = false;
  known.asks.clear();
  say(id, name, { error });
}

/**
 * The user is asked. A subagent's question is its parent's, for the parent's
 * record is what the user looks at.
 */
function ask(id, name, body) {
  const request = idOf(body.id);
  if (!request) return;
  const top = root(id);
  const question = {
    name,
    tool: short(body.permission ?? body.action ?? body.type, 100),
    agent: top === id ? undefined : id,
    call: body.tool?.callID ?? body.source?.id ?? body.callID,
  };
  const asks = session(top).asks;
  asks.set(request, question);
  bound(asks, 100);
  say(top, name, question);
}

/** A question is answered; if another is open, the user still waits. */
function answer(top, request) {
  const asks = session(top).asks;
  const question = asks.get(request);
  if (!question) return;
  asks.delete(request);
  say(top, question.name.replace("asked", "replied"), question);
  const open = [...asks.values()].pop();
  if (open) say(top, open.name, open);
}

/** What a session asked is answered: the one with this call, or all. */
function settle(id, call) {
  const top = root(id);
  for (const [request, question] of [...session(top).asks]) {
    const own = (question.agent ?? top) === id;
    if (own && (call === undefined ? top !== id : question.call === call)) answer(top, request);
  }
}

function useTool(id, known, tool) {
  if (known.parent) return;
  Object.assign(known, { busy: true, error: undefined });
  say(id, "tool.execute.before", { tool: short(tool, 100) }, "noise");
}

function endTool(id, known, tool, call) {
  if (call !== undefined) settle(id, call);
  // While another one waits for the user, the end of this one is no answer.
  if (known.parent || known.asks.size > 0) return;
  say(id, "tool.execute.after", { tool: short(tool, 100) }, "noise");
}

/** What is done with an event, by its type. */
const ACTS = {
  "session.created": (id, known) => {
    if (!known.parent) say(id, "session.created");
  },
  "session.updated": (id, known, _body, news) => {
    if (news && !known.parent && shared.live.has(id)) say(id, "session.updated", {}, "noise");
  },
  "session.deleted": (id, known) => {
    settle(id);
    if (!known.parent) say(id, "session.deleted", {}, "end");
    sessions.delete(id);
  },
  "session.compacted": (id, known) => {
    known.error = undefined;
    if (!known.parent) say(id, "session.compacted", {}, "noise");
  },
  "permission.asked": (id, _known, body) => ask(id, "permission.asked", body),
  "permission.updated": (id, _known, body) => ask(id, "permission.asked", body),
  "permission.replied": (id, _known, body) => answer(root(id), body.requestID ?? body.permissionID),
  "question.asked": (id, _known, body) => ask(id, "question.asked", { id: body.id }),
  "question.replied": (id, _known, body) => answer(root(id), body.requestID),
  "question.rejected": (id, _known, body) => answer(root(id), body.requestID),

  // 1.x only. Before the first word of a session that was taken up again it is
  // not known whose it is; the next event tells.
  "chat.message": (id, known) => {
    if (known.learnt || shared.live.has(id)) begin(id, known, "chat.message");
    else known.held = true;
  },
  "tool.execute.before": (id, known, body) => useTool(id, known, body.tool),
  "tool.execute.after": (id, known, body) => endTool(id, known, body.tool, body.callID),
  "session.status": (id, known, body) => {
    if (body.status?.type === "busy") work(id, known);
    if (body.status?.type === "idle") ACTS["session.idle"](id, known);
  },
  // An error does not end the turn: what is idle after it does.
  "session.error": (_id, known, body) => {
    if (known.busy !== false) known.error = short(body.error?.name, 100) ?? "";
  },
  "session.idle": (id, known) => {
    const error = known.error;
    known.error = undefined;
    rest(id, known, error === undefined ? "session.idle" : "session.error", error);
  },

  // 2.x only.
  "session.renamed": (id, known, body) => {
    if (learn(known, body) && !known.parent) say(id, "session.renamed", {}, "noise");
  },
  "session.moved": (id, known, body) => {
    if (learn(known, body) && !known.parent) say(id, "session.updated", {}, "noise");
  },
  "session.execution.started": (id, known) => begin(id, known, "session.execution.started"),
  "session.execution.succeeded": (id, known) => rest(id, known, "session.execution.succeeded"),
  "session.execution.interrupted": (id, known) => rest(id, known, "session.execution.interrupted"),
  "session.execution.failed": (id, known, body) => {
    rest(id, known, "session.execution.failed", short(body.error?.type ?? body.error?.name, 100));
  },
  "session.compaction.ended": (id, known) => ACTS["session.compacted"](id, known),
  "session.tool.input.started": (_id, _known, body) => {
    tools.set(body.id ?? body.callID, body.name);
    bound(tools, 1000);
  },
  "session.tool.called": (id, known, body) => useTool(id, known, tools.get(body.id ?? body.callID)),
  "session.tool.success": (id, known, body) => {
    const call = body.id ?? body.callID;
    endTool(id, known, tools.get(call), call);
    tools.delete(call);
  },
  "session.tool.failed": (id, known, body) => ACTS["session.tool.success"](id, known, body),
  "form.created": (id, _known, body) => ask(id, "question.asked", { id: body.form.id }),
  "form.replied": (id, _known, body) => answer(root(id), body.id),
  "form.cancelled": (id, _known, body) => answer(root(id), body.id),
};

/** What 2.x says in another way, too. */
const FIRST_ONLY = new Set(["session.status", "session.idle", "session.error"]);

/** Some builds of 1.x had the second generation's requests under other names. */
function actOf(type) {
  return typeof type === "string" ? type.replace(".v2.", ".") : "";
}

function idIn(body) {
  const id = idOf(body?.sessionID ?? body?.info?.id ?? body?.form?.sessionID);
  // A form may be of none.
  return id === "global" ? undefined : id;
}

/** Whether an event has come before; one without an id has not. */
function again(id) {
  if (typeof id !== "string") return false;
  if (seen.has(id)) return true;
  seen.add(id);
  bound(seen, 1000);
  return false;
}

/** One event of a session, in its turn. */
function hear(type, body, place, home) {
  const id = idIn(body);
  if (!id || !Object.hasOwn(ACTS, type)) return;
  const known = session(id);
  known.cwd ??= short(place, 4096);
  known.home = home;
  let news = false;
  if (type === "session.created" || type === "session.updated") news = learn(known, body.info ?? body);
  if (known.held && type !== "chat.message") {
    known.held = false;
    begin(id, known, "chat.message");
  }
  ACTS[type](id, known, body, news);
}

/** A directory is closed, at the end of the program or to be opened anew. */
function leave(home) {
  const here = [...shared.live].filter((id) => sessions.get(id)?.home === home);
  if (here.length === 0) return;
  closed.set(home, here);
  bound(closed, 100);
  endNow(here);
}

function comeBack(home) {
  for (const id of closed.get(home) ?? []) say(id, "session.created");
  closed.delete(home);
}

/** The plugin for 1.x. */
export const TongsPlugin = async (input) => {
  if (OFF) return {};
  const home = input?.directory;
  const me = {};
  owners.set(home, me);
  bound(owners, 1000);
  safely(comeBack)(home);
  // Old builds call every export, and so this twice; the last one speaks.
  const hook = (f) => safely((...args) => owners.get(home) === me && f(...args));
  const tell = (type) => hook((call) => hear(type, call, home, home));
  return {
    event: hook(({ event }) => {
      const type = actOf(event.type);
      if (type === "server.instance.disposed") leave(event.properties?.directory);
      else if (Object.hasOwn(ACTS, type) && !again(event.id)) hear(type, event.properties, home, home);
    }),
    "chat.message": tell("chat.message"),
    "tool.execute.before": tell("tool.execute.before"),
    "tool.execute.after": tell("tool.execute.after"),
    dispose: hook(() => leave(home)),
  };
};

/** One event of 2.x. They queue up, because a look at a session takes a moment. */
function take(ctx, event) {
  const type = actOf(event?.type);
  const body = event?.data ?? event?.properties;
  if (!Object.hasOwn(ACTS, type) || FIRST_ONLY.has(type) || again(event.id)) return;
  const step = async () => {
    const id = idIn(body);
    if (id && type !== "session.created" && !session(id).learnt) {
      const found = await soon((async () => ctx.session.get({ sessionID: id }))());
      learn(session(id), found?.data ?? found);
    }
    hear(type, body, event.location?.directory);
  };
  shared.chain = (shared.chain ?? Promise.resolve()).then(step).catch(() => {});
}

/** The plugin for 2.x. */
async function setup(ctx) {
  if (OFF) return undefined;
  let events;
  let over = false;
  const listen = async () => {
    events = (await ctx.event.subscribe())[Symbol.asyncIterator]();
    while (!over) {
      const { done, value } = await events.next();
      if (done) break;
      safely(take)(ctx, value);
    }
  };
  listen().catch(() => {});
  return async () => {
    over = true;
    await soon((async () => events?.return?.())());
  };
}

// Early builds of 1.x call whatever is exported, and OpenCode does not start where
// that is no function. All of 1.x mark their process so, and 2.x does not.
const { OPENCODE, OPENCODE_PID } = process.env;
const isFirst =
  OPENCODE === "1" &&
  (OPENCODE_PID === undefined || OPENCODE_PID === String(process.pid)) &&
  !import.meta.url.includes("?mtime=");

export default isFirst ? TongsPlugin : { id: "tongs", setup, server: TongsPlugin };
