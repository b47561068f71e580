//! The server for agents, by lines as a client writes them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::find::edit;
use crate::status::violations;
use crate::world::{World, claude, has_tool};

/// A client and its server.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(world: &World) -> Client {
        Client::of(world.command("tongs-agents"))
    }

    /// The client of a server that this command starts, given `mcp`.
    fn of(mut command: Command) -> Client {
        let mut child =
            command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Client { input: child.stdin.take(), child, output }
    }

    fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    /// The next message of the server, which is one line.
    #[track_caller]
    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(value["jsonrpc"], "2.0");
        value
    }

    /// Sends a request; the answer must be the next message.
    #[track_caller]
    fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and gives its document, which the text holds as well.
    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        document(&self.ask(json!(name), "tools/call", params))
    }

    /// Calls a tool that says why it cannot.
    #[track_caller]
    fn refused(&mut self, name: &str, arguments: Value) -> String {
        let params = json!({"name": name, "arguments": arguments});
        let result = self.ask(json!(1), "tools/call", params)["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_string()
    }

    /// Ends standard input and waits for the server's end.
    fn end(mut self) {
        drop(self.input.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[track_caller]
fn document(answer: &Value) -> Value {
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    result["structuredContent"].clone()
}

#[test]
fn versions_are_negotiated_and_tools_listed() {
    let world = World::new();
    let mut client = Client::start(&world);
    for (asked, got) in
        [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")]
    {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = client.ask(json!(0), "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], got);
        assert_eq!(answer["result"]["serverInfo"]["name"], "tongs");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.ask(json!("p"), "ping", json!({}))["result"], json!({}));
    let tools = client.ask(json!(2), "tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "fleet_status",
            "fleet_session",
            "fleet_sessions_needing_attention",
            "fleet_focus",
            "fleet_cleanup",
            "agents_status",
            "agents_wait"
        ]
    );
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        let reads = !["fleet_focus", "fleet_cleanup"].iter().any(|name| tool["name"] == *name);
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{tool}");
    }
    client.end();
}

#[test]
fn every_tool_answers_with_what_the_commands_say() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let launched = "env TONGS_AGENTS_LAUNCH_ID=L1";
    agent.hook_with(launched, &["claude", "SessionStart"], &claude("one", "")).silent();
    agent.hook(&["claude", "PermissionRequest"], &claude("one", r#","tool_name":"Bash""#)).silent();
    let mut client = Client::start(&world);
    let all = client.call("fleet_status", json!({}));
    assert_eq!(all["summary"]["total"], 1);
    assert_eq!(
        (&all["summary"]["active"], &all["summary"]["needs_attention"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(all["sessions"][0]["session_id"], "one");
    let attention = client.call("fleet_sessions_needing_attention", json!({}));
    assert_eq!(attention["message"], "1 session may need input");
    assert_eq!(attention["sessions"][0]["waiting_for"], "permission");
    let one = client.call("fleet_session", json!({"session_id": "on"}));
    assert_eq!(one["canonical_id"], all["sessions"][0]["canonical_id"]);
    assert_eq!(
        client.refused("fleet_session", json!({"session_id": "x"})),
        "no session has the id 'x'"
    );
    for (arguments, total) in [
        (json!({"launch_id": "L1"}), 1),
        (json!({"launch_id": "L2"}), 0),
        (json!({"harness": "claude", "status": "waiting"}), 1),
        (json!({"harness": "codex"}), 0),
    ] {
        assert_eq!(client.call("agents_status", arguments)["summary"]["total"], total);
    }
    let found = client.call("agents_wait", json!({"launch_id": "L1"}));
    assert_eq!((&found["session_id"], &found["confidence"]), (&json!("one"), &json!("high")));
    agent.kill();
    let gone = client.call("agents_wait", json!({"session_id": "one", "until": "gone"}));
    assert_eq!(gone["reason"], Value::Null, "{gone}");
    assert_eq!(
        client.call("fleet_sessions_needing_attention", json!({}))["message"],
        "1 session may need input"
    );
    // It finds the agents of other tests as well.
    assert_eq!(client.call("fleet_cleanup", json!({}))["removed"], 1);
    assert_eq!(client.call("agents_status", json!({"launch_id": "L1"}))["sessions"], json!([]));
    assert_eq!(
        client.call("fleet_sessions_needing_attention", json!({}))["message"],
        "All sessions healthy"
    );
    client.end();
}

#[test]
fn documents_are_as_the_schemas_of_their_tools_say() {
    let world = World::new();
    let mut agent = world.harness("claude");
    agent.hook(&["claude", "SessionStart"], &claude("one", "")).silent();
    let mut client = Client::start(&world);
    let tools = client.ask(json!(0), "tools/list", json!({}))["result"]["tools"].clone();
    for (name, arguments) in [
        ("fleet_status", json!({})),
        ("fleet_session", json!({"session_id": "one"})),
        ("fleet_sessions_needing_attention", json!({})),
        ("fleet_focus", json!({"query": "one"})),
        ("fleet_cleanup", json!({})),
        ("agents_status", json!({})),
    ] {
        let tool = tools.as_array().unwrap().iter().find(|t| t["name"] == name).unwrap();
        let document = client.call(name, arguments);
        let wrong = violations(&tool["outputSchema"], &document, name);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    client.end();
}

#[test]
fn a_focus_says_what_the_command_says() {
    let world = World::new();
    let mut agents = Vec::new();
    for session in ["one", "two"] {
        let mut agent = world.harness("claude");
        agent.hook(&["claude", "SessionStart"], &claude(session, "")).silent();
        agents.push(agent);
    }
    edit(&world, "one", json!({"status": "waiting", "terminal": "windows_terminal"}));
    let vars = json!({"WEZTERM_PANE": "1", "WEZTERM_UNIX_SOCKET": "/none"});
    edit(&world, "two", json!({"status": "waiting", "terminal": "wezterm", "terminal_env": vars}));
    let mut client = Client::start(&world);
    for (arguments, words) in [
        (json!({"query": "one"}), &["one"][..]),
        (json!({"query": world.record_of("two")["canonical_id"]}), &["two"]),
        (json!({"next": true}), &["--next"]),
    ] {
        let mut said = client.call("fleet_focus", arguments);
        let other = said.as_object_mut().unwrap();
        assert_eq!(other.remove("success"), Some(json!(false)));
        assert_eq!(other.remove("error"), Some(said["reason"].clone()));
        let ran = world.agents(&[&["focus", "--json"], words].concat());
        assert_eq!(said, ran.json(), "{words:?}");
        assert_ne!(said["reason"], "");
    }
    let said = client.refused("fleet_focus", json!({"query": "claude"}));
    assert!(said.starts_with("several sessions match 'claude': "), "{said}");
    client.end();
}

#[test]
fn a_server_that_wrote_is_not_woken_for_nothing() {
    let test = "a_server_that_wrote_is_not_woken_for_nothing";
    if !has_tool("strace", test) {
        return;
    }
    let world = World::new();
    let mut command = Command::new("strace");
    world.bare(&mut command);
    let trace = world.path("trace");
    command.args(["-e", "trace=setitimer", "-o"]).arg(&trace).arg(world.path("bin/tongs-agents"));
    let mut client = Client::of(command);
    client.call("fleet_cleanup", json!({}));
    client.end();
    let trace = std::fs::read_to_string(trace).unwrap();
    let last = trace.lines().rfind(|line| line.contains("setitimer(ITIMER_REAL")).unwrap();
    assert!(last.contains("it_value={tv_sec=0, tv_usec=0}}"), "{trace}");
}

#[test]
fn a_wait_keeps_nobody_waiting_and_can_be_cancelled() {
    let world = World::new();
    let mut client = Client::start(&world);
    let call = |id: u32, launch: &str| {
        let arguments = json!({"launch_id": launch, "timeout_ms": 60000});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "agents_wait", "arguments": arguments}})
    };
    client.send(&call(1, "L1"));
    client.send(&call(2, "L2"));
    // Others are answered meanwhile.
    assert_eq!(client.ask(json!("p"), "ping", json!({}))["result"], json!({}));
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    let mut agents = [world.harness("claude"), world.harness("claude")];
    for (agent, launch) in agents.iter_mut().zip(["L1", "L2"]) {
        let launched = format!("env TONGS_AGENTS_LAUNCH_ID={launch}");
        agent.hook_with(&launched, &["claude", "SessionStart"], &claude(launch, "")).silent();
    }
    // The cancelled one has no answer.
    let answer = client.next();
    assert_eq!((&answer["id"], &document(&answer)["session_id"]), (&json!(2), &json!("L2")));
    assert_eq!(client.ask(json!("p"), "ping", json!({}))["id"], "p");
    // The end of input ends waits as well.
    client.send(&call(3, "L3"));
    client.end();
}

#[test]
fn a_client_that_sends_garbage_gets_errors_and_goes_on() {
    let world = World::new();
    let mut client = Client::start(&world);
    let mut code = |line: &str| {
        client.line(line);
        let answer = client.next();
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    };
    assert_eq!(code("garbage"), (-32700, Value::Null));
    assert_eq!(code("{\"a\":1,\"a\":2}"), (-32700, Value::Null));
    assert_eq!(code("[]"), (-32600, Value::Null));
    assert_eq!(code("{\"id\":5}"), (-32600, json!(5)));
    assert_eq!(code("{\"id\":\"x\",\"method\":\"resources/list\"}"), (-32601, json!("x")));
    assert_eq!(
        code("{\"id\":6,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"}}"),
        (-32602, json!(6))
    );
    assert_eq!(
        code(
            "{\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"fleet_status\",\"arguments\":[]}}"
        ),
        (-32602, json!(7))
    );
    assert_eq!(code(&"[".repeat(1000)), (-32700, Value::Null));
    assert_eq!(code(&"x".repeat(20 << 20)), (-32600, Value::Null));
    // What needs no answer has none.
    client.line("");
    client.line("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}");
    client.line("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
    for (name, arguments, why) in [
        ("fleet_status", json!({"x": 1}), "no other arguments"),
        ("fleet_session", json!({}), "'session_id' is missing"),
        ("fleet_session", json!({"session_id": 5}), "'session_id' is no text"),
        ("fleet_focus", json!({}), "exactly one of query and next"),
        ("fleet_focus", json!({"query": "a", "next": true}), "exactly one of query and next"),
        ("fleet_focus", json!({"next": 1}), "'next' is neither true nor false"),
        ("fleet_focus", json!({"query": "none"}), "no session matches 'none'"),
        ("fleet_focus", json!({"next": true}), "nobody asks for you"),
        ("agents_status", json!({"harness": "nobody"}), "unknown harness"),
        ("agents_status", json!({"status": "busy"}), "unknown status"),
        ("agents_wait", json!({}), "exactly one of"),
        ("agents_wait", json!({"pid": 1, "tree": 1}), "exactly one of"),
        ("agents_wait", json!({"pid": -1}), "'pid' is no whole number"),
        ("agents_wait", json!({"pid": 1, "until": "never"}), "--until cannot be 'never'"),
        ("agents_wait", json!({"pid": 1, "timeout_ms": "5"}), "'timeout_ms' is no whole number"),
    ] {
        let said = client.refused(name, arguments.clone());
        assert!(said.contains(why), "{name} {arguments}: {said}");
    }
    client.end();
}

#[test]
fn hostile_text_of_records_stays_text() {
    let world = World::new();
    let mut agent = world.harness("claude");
    let id = "a\u{1b}]0;x\u{7}\u{202e}\"\\b";
    let payload = json!({"session_id": id, "cwd": "/tmp"}).to_string();
    agent.hook(&["claude", "SessionStart"], &payload).silent();
    let mut client = Client::start(&world);
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fleet_status"}}));
    let mut line = String::new();
    client.output.read_line(&mut line).unwrap();
    assert!(!line.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(document(&answer)["sessions"][0]["session_id"], id);
    client.end();
}
