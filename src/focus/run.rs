//! Running a terminal's tool: looked for on PATH, with an argument array, few
//! variables and a time limit.

use std::ffi::CString;

use serde_json::Value;

use super::Stop;
use crate::sys::clock::Now;
use crate::sys::env::{Env, Var};
use crate::sys::fs::{Dir, May};
use crate::sys::spawn;

/// Milliseconds that a tool may take, and after which no further one is run: a
/// terminal whose every answer is slow keeps nobody.
const LIMIT_MS: u64 = 1000;
const ALL_MS: u64 = 5000;

/// The variables that a tool gets, where they are set: how it finds its files, the
/// window system and the bus. Those of the caller's terminal are not among them,
/// for without an explicit target they would become the target.
const PASSED: [Var; 11] = [
    Var::PATH,
    Var::HOME,
    Var::DISPLAY,
    Var::XAUTHORITY,
    Var::WAYLAND_DISPLAY,
    Var::XDG_RUNTIME_DIR,
    Var::DBUS_SESSION_BUS_ADDRESS,
    Var::SWAYSOCK,
    Var::HYPRLAND_INSTANCE_SIGNATURE,
    Var::NIRI_SOCKET,
    Var::SCREENDIR,
];

/// A tool, with the words that every call of it begins with.
pub(super) struct Tool {
    /// Its name.
    pub name: &'static str,
    path: String,
    first: Vec<String>,
    vars: Vec<(&'static str, String)>,
}

impl Tool {
    /// Begins every call with these words.
    pub fn with(mut self, words: &[&str]) -> Tool {
        self.first.extend(words.iter().map(ToString::to_string));
        self
    }

    /// Gives every call this variable.
    pub fn with_var(mut self, var: Var, value: &str) -> Tool {
        self.vars.push((var.name(), value.to_string()));
        self
    }

    /// That it printed what it should not.
    pub fn odd(&self) -> Stop {
        Stop::Failed(format!("what {} printed is not understood", self.name))
    }

    fn said(&self, args: &[&str], how: &str) -> Stop {
        let verb = args.first().copied().unwrap_or("");
        Stop::Failed(format!("'{} {verb}' {how}", self.name))
    }

    /// The words of a call.
    pub fn words(&self, args: &[&str]) -> Vec<String> {
        let name = core::iter::once(self.name.to_string());
        name.chain(self.first.iter().cloned()).chain(args.iter().map(ToString::to_string)).collect()
    }
}

/// Runs tools for one command.
pub struct Runner<'a> {
    /// The environment of the caller.
    pub env: &'a Env<'a>,
    /// Whether nothing is to be changed.
    pub dry_run: bool,
    /// The client of the multiplexer that is meant, where the caller says so.
    pub client: Option<&'a str>,
    /// The calls that changed something, or that would.
    pub calls: Vec<Vec<String>>,
    /// Monotonic milliseconds when it began.
    began_ms: u64,
}

impl<'a> Runner<'a> {
    /// A runner that has run nothing, for one jump: its time begins now.
    pub fn new(env: &'a Env<'a>) -> Runner<'a> {
        let began_ms = Now::read().mono_ms;
        Runner { env, dry_run: false, client: None, calls: Vec::new(), began_ms }
    }

    /// Finds a tool.
    pub(super) fn tool(&self, name: &'static str) -> Result<Tool, Stop> {
        let dirs = self.env.text(Var::PATH).unwrap_or("").split(':');
        let paths = dirs.filter(|dir| dir.starts_with('/')).map(|dir| format!("{dir}/{name}"));
        let path = paths.into_iter().find(|path| is_program(path)).ok_or(Stop::Missing(name))?;
        Ok(Tool { name, path, first: Vec::new(), vars: Vec::new() })
    }

    /// Runs a tool that only tells something, and returns what it prints.
    pub(super) fn ask(&self, tool: &Tool, args: &[&str]) -> Result<String, Stop> {
        match self.run(tool, args)? {
            (0, text) => Ok(text),
            _ => Err(tool.said(args, "failed")),
        }
    }

    /// The same of a tool that prints JSON.
    #[inline(never)]
    pub(super) fn ask_json(&self, tool: &Tool, args: &[&str]) -> Result<Value, Stop> {
        serde_json::from_slice(self.ask(tool, args)?.as_bytes()).map_err(|_| tool.odd())
    }

    /// The same of a tool whose exit status says nothing.
    pub(super) fn hear(&self, tool: &Tool, args: &[&str]) -> Result<String, Stop> {
        self.run(tool, args).map(|(_, text)| text)
    }

    fn run(&self, tool: &Tool, args: &[&str]) -> Result<(i32, String), Stop> {
        if Now::read().mono_ms.saturating_sub(self.began_ms) >= ALL_MS {
            return Err(super::failed("its terminal's tools take too long"));
        }
        let set = PASSED.iter().filter_map(|var| Some((var.name(), self.env.text(*var)?)));
        let own = tool.vars.iter().map(|(name, value)| (*name, value.as_str()));
        let vars: Vec<(&str, &str)> = set.chain(own).collect();
        let words: Vec<&str> =
            tool.first.iter().map(String::as_str).chain(args.iter().copied()).collect();
        match spawn::run(&tool.path, &words, &vars, b"", LIMIT_MS) {
            Ok(ran) => match (ran.code, String::from_utf8(ran.out)) {
                (None, _) => Err(tool.said(args, "did not end within a second")),
                (_, Err(_)) => Err(tool.odd()),
                (Some(code), Ok(text)) => Ok((code, text)),
            },
            Err(_) => Err(tool.said(args, "could not be started")),
        }
    }

    /// Runs a tool that changes something, or notes that it would be run.
    pub(super) fn act(&mut self, tool: &Tool, args: &[&str]) -> Result<(), Stop> {
        self.calls.push(tool.words(args));
        if !self.dry_run {
            self.ask(tool, args)?;
        }
        Ok(())
    }
}

fn is_program(path: &str) -> bool {
    let Ok(path) = CString::new(path) else { return false };
    let dir = Dir::cwd();
    dir.follow(&path).is_ok_and(|meta| meta.is_file()) && dir.may(&path, May::Run)
}
