//! `tongs-agents mcp`: the sessions for agents themselves, by the Model Context
//! Protocol on standard input and output.
//!
//! One loop: a line from the client is answered at once, and only a wait stays
//! open; while it does, other requests and its cancellation are heard. The end of
//! standard input ends everything.

mod tools;

use argh::FromArgs;

use super::super::Start;
use super::super::fail::stdout;
use super::options;
use crate::cli::{Exit, Fail};
use crate::install::text::json::{self, Dialect, Node};
use crate::record::out::{Object, Sink, Style, string};
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::stdio;
use crate::sys::watch::sleep;

use tools::{Called, Pending, Reply};

/// Longest line of a client in bytes. One that is longer is passed over.
const MAX_LINE: usize = 1024 * 1024;
/// Most waits that are open at a time.
const MAX_WAITS: usize = 16;
/// Versions of the protocol, the newest first. What they differ in is not used.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Serve the sessions to agents, by the Model Context Protocol.
#[derive(FromArgs)]
#[argh(
    example = "claude mcp add --scope user tongs -- tongs-agents mcp",
    note = "See tongs-agents(1).",
    error_code(0, "the client has ended"),
    error_code(64, "usage"),
    error_code(74, "standard output could not be written")
)]
struct Options {}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let Options {} = options("mcp", words)?;
    let mut server = Server { env: start.env, input: Input::default(), waits: Vec::new() };
    loop {
        let alarms: Vec<_> = [stdio::in_alarm()]
            .into_iter()
            .chain(server.waits.iter().flat_map(|pending| pending.wait.alarms()))
            .collect();
        sleep(&alarms, server.patience());
        drop(alarms);
        if !matches!(stdio::wait(0), stdio::Ready::No) && !server.hear()? {
            return Ok(Exit::Ok);
        }
        server.look_after_waits()?;
    }
}

/// What came from the client and is no whole line yet.
#[derive(Default)]
struct Input {
    held: Vec<u8>,
    /// Whether the line is too long to be kept.
    over: bool,
}

struct Server<'e> {
    env: &'e Env<'e>,
    input: Input,
    waits: Vec<Pending>,
}

/// A JSON-RPC error: its number and what it says.
struct Wrong(i32, &'static str);

const PARSE: Wrong = Wrong(-32700, "this is no JSON");
const REQUEST: Wrong = Wrong(-32600, "this is no request");
const METHOD: Wrong = Wrong(-32601, "there is no such method");
const PARAMS: Wrong = Wrong(-32602, "the parameters are wrong");
const LENGTH: Wrong = Wrong(-32600, "the message is longer than 1 MiB");

impl Server<'_> {
    /// Milliseconds until a wait is to be looked at without anybody's waking.
    fn patience(&self) -> u64 {
        let now = Now::read().mono_ms;
        self.waits.iter().map(|pending| pending.patience(now)).min().unwrap_or(u64::MAX)
    }

    /// Reads once and answers the lines that are complete; `false` at the end.
    fn hear(&mut self) -> Result<bool, Fail> {
        let mut buffer = [0; 64 * 1024];
        let mut rest = match stdio::read(&mut buffer) {
            Ok(0) | Err(_) => return Ok(false),
            Ok(n) => buffer.get(..n).unwrap_or(b""),
        };
        while let Some(at) = rest.iter().position(|b| *b == b'\n') {
            let (line, behind) = rest.split_at(at);
            self.input.take(line);
            rest = behind.get(1..).unwrap_or(b"");
            if core::mem::take(&mut self.input.over) {
                self.input.held.clear();
                wrong("null", &LENGTH)?;
            } else {
                let line = core::mem::take(&mut self.input.held);
                self.line(&line)?;
            }
        }
        self.input.take(rest);
        Ok(true)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Fail> {
        let Ok(line) = core::str::from_utf8(line) else { return wrong("null", &PARSE) };
        if line.trim().is_empty() {
            return Ok(());
        }
        let Ok(message) = json::parse(line, Dialect::Strict) else { return wrong("null", &PARSE) };
        let id = message.get("id").map(|id| line.get(id.span.clone()).unwrap_or("null"));
        let Some(method) = message.get("method").and_then(Node::text) else {
            // A response to a request, which we never make.
            let response = message.get("result").or_else(|| message.get("error")).is_some();
            return if response { Ok(()) } else { wrong(id.unwrap_or("null"), &REQUEST) };
        };
        let params = message.get("params");
        let Some(id) = id else {
            if method == "notifications/cancelled" {
                self.cancel(params, line);
            }
            return Ok(());
        };
        match method {
            "initialize" => answer(id, |sink| initialized(sink, params)),
            "ping" => answer(id, |sink| sink.put(b"{}")),
            "tools/list" => answer(id, |sink| {
                sink.put(b"{\"tools\":");
                // A message is one line.
                tools::LIST.lines().for_each(|line| sink.put(line.as_bytes()));
                sink.put(b"}");
            }),
            "tools/call" => self.call(id, params, line),
            _ => wrong(id, &METHOD),
        }
    }

    /// Calls a tool. Nobody waits for a wait.
    fn call(&mut self, id: &str, params: Option<&Node>, line: &str) -> Result<(), Fail> {
        let name = params.and_then(|params| params.get("name")).and_then(Node::text);
        let arguments = params.and_then(|params| params.get("arguments"));
        let Some(name) = name.filter(|_| arguments.is_none_or(Node::is_map)) else {
            return wrong(id, &PARAMS);
        };
        match tools::call(self.env, id, name, arguments, line) {
            None => wrong(id, &PARAMS),
            Some(Called::Done(reply)) => replied(id, &reply),
            Some(Called::Waits(_)) if self.waits.len() >= MAX_WAITS => {
                replied(id, &Reply::error("too many waits are open"))
            }
            Some(Called::Waits(pending)) => {
                self.waits.push(*pending);
                Ok(())
            }
        }
    }

    /// Ends a wait without an answer.
    fn cancel(&mut self, params: Option<&Node>, line: &str) {
        let id = params.and_then(|params| params.get("requestId"));
        if let Some(id) = id.and_then(|id| line.get(id.span.clone())) {
            self.waits.retain(|pending| pending.id != id);
        }
    }

    /// Answers the waits that are over.
    fn look_after_waits(&mut self) -> Result<(), Fail> {
        let mut open = Vec::new();
        for mut pending in self.waits.drain(..) {
            match pending.look(self.env) {
                Some(reply) => replied(&pending.id, &reply)?,
                None => open.push(pending),
            }
        }
        self.waits = open;
        Ok(())
    }
}

impl Input {
    fn take(&mut self, bytes: &[u8]) {
        if self.over || self.held.len() + bytes.len() > MAX_LINE {
            self.over = true;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }
}

/// Writes the answer to `initialize`.
fn initialized(sink: &mut Vec<u8>, params: Option<&Node>) {
    let asked = params.and_then(|params| params.get("protocolVersion")).and_then(Node::text);
    let version = VERSIONS.into_iter().find(|version| Some(*version) == asked);
    let mut object = Object::open(sink);
    object.str("protocolVersion", version.unwrap_or(VERSIONS[0]));
    object.key("capabilities").put(b"{\"tools\":{\"listChanged\":false}}");
    let server = object.key("serverInfo");
    let mut info = Object::open(server);
    info.str("name", "tongs").str("title", "tongs").str("version", env!("CARGO_PKG_VERSION"));
    info.close();
    object.str(
        "instructions",
        "Sessions of coding agents on this machine: which one works, which one waits for the user.",
    );
    object.close();
}

/// Sends a result that `fill` writes.
fn answer(id: &str, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fail> {
    send(id, |object| fill(object.key("result")))
}

/// Sends what a tool replied: the document as text, and as it is.
fn replied(id: &str, reply: &Reply) -> Result<(), Fail> {
    answer(id, |sink| {
        sink.put(b"{\"content\":[{\"type\":\"text\",\"text\":");
        string(sink, &reply.text, Style::Shown);
        sink.put(b"}]");
        if !reply.wrong {
            sink.put(b",\"structuredContent\":");
            sink.put(reply.text.as_bytes());
        }
        sink.put(if reply.wrong { b",\"isError\":true}" } else { b",\"isError\":false}" });
    })
}

fn wrong(id: &str, wrong: &Wrong) -> Result<(), Fail> {
    send(id, |object| {
        let sink = object.key("error");
        sink.put(format!("{{\"code\":{},\"message\":\"{}\"}}", wrong.0, wrong.1).as_bytes());
    })
}

fn send(id: &str, fill: impl FnOnce(&mut Object<'_, Vec<u8>>)) -> Result<(), Fail> {
    let mut line = Vec::new();
    let mut object = Object::open(&mut line);
    object.str("jsonrpc", "2.0");
    object.key("id").put(id.as_bytes());
    fill(&mut object);
    object.close();
    line.put(b"\n");
    let mut out = stdout();
    out.put(&line)?;
    out.flush()
}
