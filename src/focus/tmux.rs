//! tmux: a pane of the server whose socket the record has.
//!
//! The pane is the one that the session's process is below, in a server that is
//! that pane's parent. So a pane that was moved is found where it is now, and an
//! id that another server has given again is never taken for the old one. Every
//! command names its server, its target and its client.

use std::ffi::CString;

use super::run::{Runner, Tool};
use super::{Outcome, State, Stop, Target, gone, no_way, window};
use crate::probe::Ancestry;
use crate::sys::env::Var;
use crate::sys::fs::{Dir, Meta, euid};
use crate::sys::process;

const PANES: &str = "#{pid} #{pane_pid} #{session_id} #{window_id} #{pane_id}";
// The name comes last: it may hold anything.
const CLIENTS: &str = "#{client_control_mode} #{client_pid} #{client_activity} \
                       #{session_id} #{window_id} #{pane_id} #{client_name}";
const PLACE: &str = "#{session_id} #{window_id} #{pane_id} #{window_active} #{pane_active}";

/// Where a pane is shown: a window of a session. The ids are tmux's own, which
/// do not change while its server lives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    session: String,
    window: String,
    pane: String,
}

impl Place {
    fn of(session: &str, window: &str, pane: &str) -> Option<Place> {
        let all = [(session, '$'), (window, '@'), (pane, '%')];
        all.iter().all(|(id, mark)| is_id(id, *mark)).then(|| Place {
            session: session.to_string(),
            window: window.to_string(),
            pane: pane.to_string(),
        })
    }

    fn window(&self) -> String {
        format!("{}:{}", self.session, self.window)
    }

    fn target(&self) -> String {
        format!("{}:{}.{}", self.session, self.window, self.pane)
    }
}

fn is_id(text: &str, mark: char) -> bool {
    let digits = text.strip_prefix(mark).unwrap_or("");
    (1..=10).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A pane in one of the places that show it.
struct Pane {
    server: u32,
    pid: u32,
    place: Place,
}

/// A terminal that shows a session.
#[derive(Clone)]
struct Client {
    pid: u32,
    activity: u64,
    place: Place,
    name: String,
}

/// A value of TMUX: the socket, the server's pid, the number of a session.
struct Value<'v> {
    socket: &'v str,
    session: String,
}

impl Value<'_> {
    fn of(text: &str) -> Option<Value<'_>> {
        let mut parts = text.rsplitn(3, ',');
        let (session, _, socket) = (parts.next()?, parts.next()?, parts.next()?);
        socket.starts_with('/').then(|| Value { socket, session: format!("${session}") })
    }
}

fn socket(path: &str) -> Option<Meta> {
    let path = CString::new(path).ok()?;
    Dir::cwd().follow(&path).ok().filter(|meta| meta.is_socket() && meta.uid == euid())
}

/// A server and what is in it.
struct Server {
    tool: Tool,
    socket: Meta,
    panes: Vec<Pane>,
    clients: Vec<Client>,
}

impl Server {
    fn look(path: &str, run: &Runner<'_>) -> Result<Server, Stop> {
        let socket = socket(path)
            .ok_or_else(|| gone("the socket of its tmux server is gone, or not ours"))?;
        let tool = run.tool("tmux")?.with(&["-S", path]);
        let panes = run.ask(&tool, &["list-panes", "-a", "-F", PANES])?;
        let panes = panes.lines().filter_map(pane).collect();
        let clients = clients(&tool, run)?;
        Ok(Server { tool, socket, panes, clients })
    }

    /// The places of the pane that a process is in; none if it is in none.
    fn holding(&self, pid: u32) -> Vec<&Pane> {
        let mut ancestry = Ancestry::from(pid);
        let mut at = 0;
        while let Some(process) = ancestry.get(at) {
            let is_it = |p: &&Pane| p.pid == process.pid && p.server == process.ppid;
            let held: Vec<&Pane> = self.panes.iter().filter(is_it).collect();
            if !held.is_empty() {
                return held;
            }
            at += 1;
        }
        Vec::new()
    }

    /// The client that the caller sits at, or that it names.
    fn client_of_caller(&self, run: &Runner<'_>) -> Result<Option<&Client>, Stop> {
        if let Some(name) = run.client {
            let found = self.clients.iter().find(|client| client.name == name);
            let none = || Stop::Failed(format!("its tmux server has no client '{name}'"));
            return found.map(Some).ok_or_else(none);
        }
        let value = run.env.text(Var::TMUX).and_then(Value::of);
        let here = value.filter(|v| socket(v.socket).is_some_and(|s| s.same(&self.socket)));
        let Some(value) = here else { return Ok(None) };
        let pane = self.holding(process::own()).first().map(|pane| pane.place.pane.clone());
        let last = |fits: &dyn Fn(&Client) -> bool| {
            self.clients.iter().filter(|c| fits(c)).max_by_key(|client| client.activity)
        };
        let at_pane = last(&|c| Some(&c.place.pane) == pane.as_ref());
        // A key binding's program is in no pane, and TMUX names the session.
        Ok(at_pane.or_else(|| last(&|c| c.place.session == value.session)))
    }
}

fn pane(line: &str) -> Option<Pane> {
    let mut words = line.split(' ');
    let (server, pid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let place = Place::of(words.next()?, words.next()?, words.next()?)?;
    Some(Pane { server, pid, place })
}

/// The clients that are terminals.
fn clients(tool: &Tool, run: &Runner<'_>) -> Result<Vec<Client>, Stop> {
    let text = run.ask(tool, &["list-clients", "-F", CLIENTS])?;
    Ok(text.lines().filter_map(client).collect())
}

fn client(line: &str) -> Option<Client> {
    let mut words = line.splitn(7, ' ');
    let is_terminal = words.next()? == "0";
    let (pid, activity) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let place = Place::of(words.next()?, words.next()?, words.next()?)?;
    let name = words.next()?.to_string();
    is_terminal.then_some(Client { pid, activity, place, name })
}

/// What a pane looks like after it was selected.
struct Selected {
    /// Whether its session has it as the active one, as was read back.
    verified: bool,
    /// Whether the caller's client shows it.
    before_caller: bool,
    /// The clients that show it, the one that was used last at the end.
    shown_by: Vec<Client>,
    /// What shows it in another terminal.
    attach: Vec<String>,
}

/// Selects the pane that a process is in, for the caller's client where it has
/// one in this server.
fn select(
    server: &Server,
    pid: u32,
    of_record: &str,
    run: &mut Runner<'_>,
) -> Result<Selected, Stop> {
    let held = server.holding(pid);
    if held.is_empty() {
        return Err(gone("no pane of its tmux server holds its process"));
    }
    let caller = server.client_of_caller(run)?.cloned();
    let has_client = |p: &Pane| server.clients.iter().any(|c| c.place.session == p.place.session);
    let of_caller = |p: &Pane| caller.as_ref().is_some_and(|c| c.place.session == p.place.session);
    let best = held
        .iter()
        .max_by_key(|pane| (of_caller(pane), has_client(pane), pane.place.session == of_record));
    let Some(Pane { place, .. }) = best else {
        return Err(gone("its pane is gone"));
    };
    let (window, target) = (place.window(), place.target());
    run.act(&server.tool, &["select-window", "-t", &window])?;
    run.act(&server.tool, &["select-pane", "-t", &target])?;
    if let Some(client) = caller.as_ref().filter(|c| c.place.session != place.session) {
        let switch = ["switch-client", "-c", &client.name, "-t", &place.session];
        run.act(&server.tool, &switch)?;
    }
    let said = run.ask(&server.tool, &["display-message", "-p", "-t", &target, PLACE])?;
    let Place { session, window, pane } = place;
    let verified = said.trim_end() == format!("{session} {window} {pane} 1 1");
    let mut shown_by = clients(&server.tool, run)?;
    shown_by.retain(|client| client.place == *place);
    shown_by.sort_by_key(|client| client.activity);
    let is_caller = |c: &Client| caller.as_ref().is_some_and(|caller| caller.name == c.name);
    Ok(Selected {
        verified,
        before_caller: shown_by.iter().any(is_caller),
        shown_by,
        attach: server.tool.words(&["attach-session", "-t", session]),
    })
}

/// Goes to the pane of a session.
pub fn go(target: &Target, run: &mut Runner<'_>) -> Result<Outcome, Stop> {
    let Some(value) = Value::of(target.var(Var::TMUX)) else {
        return Err(no_way("the socket of its tmux server is not recorded"));
    };
    let server = Server::look(value.socket, run)?;
    let selected = select(&server, target.pid, &value.session, run)?;
    if run.dry_run {
        return Ok(Outcome::planned());
    }
    let outer = outer(&server, &selected, run)?;
    let before_caller = selected.before_caller || outer == Outer::Shown;
    let shown = !selected.shown_by.is_empty();
    let (state, reason) = match (selected.verified, shown, outer) {
        (false, ..) => (State::Failed, "tmux did not select its pane"),
        (true, true, Outer::Elsewhere) => {
            (State::Complete, "its tmux server is not the one that this runs in")
        }
        (true, true, _) => (State::Complete, ""),
        (true, false, Outer::Elsewhere) => (
            State::Partial,
            "no client shows its session, and its tmux server is not the one that this runs in",
        ),
        (true, false, _) => (State::Partial, "no client shows its session"),
    };
    let mut reason = reason.to_string();
    let mut raised = None;
    if let Some(client) = selected.shown_by.last().filter(|_| !before_caller) {
        let window = window::raise(client.pid, run);
        raised = window.is;
        if reason.is_empty() {
            reason = window.reason;
        }
    }
    Ok(Outcome {
        state,
        selected: selected.verified,
        raised,
        verified: selected.verified,
        reason,
        command: if before_caller { Vec::new() } else { selected.attach },
        ..Outcome::unavailable("")
    })
}

/// What there is to say of the server that the caller runs in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outer {
    /// It is the session's, or there is none.
    None,
    /// It shows a client of the session's server, which runs in it.
    Shown,
    /// It is another one.
    Elsewhere,
}

/// Goes to the client of a session where that runs in a pane of the server that
/// the caller runs in.
fn outer(server: &Server, selected: &Selected, run: &mut Runner<'_>) -> Result<Outer, Stop> {
    let value = run.env.text(Var::TMUX).and_then(Value::of);
    let other = value.filter(|v| socket(v.socket).is_some_and(|s| !s.same(&server.socket)));
    let Some(value) = other.filter(|_| run.client.is_none()) else { return Ok(Outer::None) };
    let outer = Server::look(value.socket, run)?;
    let inside = |client: &&Client| !outer.holding(client.pid).is_empty();
    let Some(client) = selected.shown_by.iter().rev().find(inside) else {
        return Ok(Outer::Elsewhere);
    };
    let shown = select(&outer, client.pid, &value.session, run)?;
    Ok(if shown.verified && shown.before_caller { Outer::Shown } else { Outer::Elsewhere })
}

/// The process of the pane that this program runs in.
pub fn pane_of_caller(run: &Runner<'_>) -> Option<u32> {
    let value = run.env.text(Var::TMUX).and_then(Value::of)?;
    let server = Server::look(value.socket, run).ok()?;
    let held = server.holding(process::own()).first().map(|pane| pane.pid);
    held.or_else(|| {
        let client = server.client_of_caller(run).ok()??;
        server.panes.iter().find(|p| p.place.pane == client.place.pane).map(|p| p.pid)
    })
}

/// That a client shows a session.
pub struct Viewed {
    /// When the client was last used, epoch seconds.
    pub activity: u64,
}

/// Tells whether a client shows a session, and when the last one of these was
/// used.
pub fn viewed(target: &Target, run: &Runner<'_>) -> Option<Viewed> {
    let server = Server::look(Value::of(target.var(Var::TMUX))?.socket, run).ok()?;
    let held = server.holding(target.pid);
    let shows = |c: &&Client| held.iter().any(|pane| pane.place == c.place);
    let activity = server.clients.iter().filter(shows).map(|client| client.activity).max()?;
    Some(Viewed { activity })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_tmux_s_shape() {
        assert!(Place::of("$0", "@1", "%23").is_some());
        for (session, window, pane) in
            [("0", "@1", "%2"), ("$0", "@", "%2"), ("$0", "@1", "%2;x"), ("$0", "@1", "#{pid}")]
        {
            assert!(Place::of(session, window, pane).is_none(), "{session} {window} {pane}");
        }
    }

    #[test]
    fn a_socket_may_have_commas() {
        let value = Value::of("/tmp/a,b,12,3").unwrap();
        assert_eq!((value.socket, value.session.as_str()), ("/tmp/a,b", "$3"));
        for text in ["", "/tmp/a", "/tmp/a,1", "tmp/a,1,2"] {
            assert!(Value::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_client_s_name_comes_last_and_control_clients_do_not_count() {
        let seen = client("0 12 99 $1 @2 %3 odd name").unwrap();
        assert_eq!((seen.pid, seen.activity, seen.name.as_str()), (12, 99, "odd name"));
        assert!(client("1 12 99 $1 @2 %3 c").is_none());
        assert!(client("0 12 99 $1 @2 c").is_none());
    }
}
