//! `tongs-bridge-import`: sessions of other places, sandboxes and trackers into
//! this store.
//!
//! One line after the other: each is taken or refused for itself, with a result
//! of its own, as soon as it has come.

use std::ffi::{CStr, CString};

use argh::FromArgs;

use super::bridges::check_name;
use super::fail::{Stdout, early, end, errno, no_timer, stdout, unusable, words};
use super::imports::{self, Bridge, Importer, Refusal};
use super::lines::{Line, Lines};
use super::store::{Found, LOCKS_MS, find, make};
use super::trackers::Told;
use super::{Start, settle_command};
use crate::cli::{Exit, Fail, Out, Shown, parse};
use crate::probe::Here;
use crate::record::out::{Object, Sink, Style, string};
use crate::record::{Fault, FaultKind, MAX_BYTES};
use crate::sys::fs::{Dir, Errno, File, Meta, Open, euid};
use crate::sys::{guard, stdio};

const PROG: &str = "tongs-bridge-import";
/// Most files of a directory.
const MAX_FILES: usize = 100_000;

/// Take over records of sessions from elsewhere, one a line.
#[derive(FromArgs)]
#[argh(
    example = "ssh box tongs-agents export --follow | tongs-bridge-import --bridge box",
    note = "See tongs-bridge-import(1).",
    error_code(0, "all were accepted, or the bridge has no records any more"),
    error_code(1, "some were refused"),
    error_code(64, "usage"),
    error_code(65, "the input cannot be read"),
    error_code(74, "a record could not be written"),
    error_code(75, "another process holds a record's lock"),
    error_code(77, "the store or the input is not private or not ours")
)]
struct Options {
    /// the file, or with session-state a directory; default, and -: standard input
    #[argh(positional, arg_name = "FILE")]
    file: Option<String>,
    /// who brings them: owns what it brings, and nothing else
    #[argh(option, arg_name = "NAME")]
    bridge: Option<String>,
    /// remove all records of the bridge
    #[argh(switch)]
    retire: bool,
    /// what a line is: record, which is the default, or session-state
    #[argh(option, arg_name = "F", default = "String::from(\"record\")")]
    format: String,
    /// print the results as JSON, one object a line
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// print the version
    #[argh(switch)]
    version: bool,
}

/// Runs the program.
pub fn run(start: &Start<'_>) -> i32 {
    settle_command();
    end(PROG, import(start))
}

fn import(start: &Start<'_>) -> Result<Exit, Fail> {
    let words = words(start.args.get(1..).unwrap_or(&[]))?;
    let options: Options = parse(PROG, &words).map_err(early)?;
    let usage = |text: String| Err(Fail::new(Exit::Usage, text));
    if options.version {
        let mut out = stdout();
        writeln!(out, "{PROG} {}", env!("CARGO_PKG_VERSION"))?;
        out.flush()?;
        return Ok(Exit::Ok);
    }
    if let Some(n) = options.json_version.filter(|n| *n != 1) {
        return usage(format!("there is no JSON version {n}: this build has 1"));
    }
    let trackers = match options.format.as_str() {
        "record" => false,
        "session-state" => true,
        other => {
            return usage(format!("--format cannot be '{other}': it is record or session-state"));
        }
    };
    let bridge = options.bridge.as_deref();
    bridge.map_or(Ok(()), check_name)?;
    let json = options.json || options.json_version.is_some();
    let file = options.file.as_deref().filter(|file| *file != "-");
    match (options.retire, bridge, options.file.as_deref()) {
        (true, Some(bridge), None) => retire(start, bridge, json),
        (true, None, _) => usage("--retire needs --bridge".to_string()),
        (true, _, Some(_)) => usage("--retire takes no file".to_string()),
        (false, _, _) => take(start, bridge, trackers, file, json),
    }
}

/// Where the lines come from.
enum Input {
    Standard,
    /// A file, and how much of it was there when it was opened.
    File(File, u64),
    /// A directory, and the files in it.
    Directory(Dir, Vec<CString>),
}

/// Takes everything of an input over.
fn take(
    start: &Start<'_>,
    bridge: Option<&str>,
    trackers: bool,
    file: Option<&str>,
    json: bool,
) -> Result<Exit, Fail> {
    let input = match file {
        None => Input::Standard,
        Some(path) => open(path, trackers)?,
    };
    stdio::private_umask();
    let store = make(start.env)?;
    let importer = Importer {
        store: &store,
        bridge: bridge.map(|name| Bridge::find(name, &store)).transpose()?,
        here: Here::read(),
        scratch: Box::default(),
        scan: Box::default(),
    };
    let report = Report { out: stdout(), json, seen: 0, refused: 0, exit: Exit::No };
    let mut work = Work { start, importer, trackers, report };
    match input {
        Input::Directory(dir, names) => work.files(&dir, &names)?,
        Input::Standard => work.lines(stdio::read)?,
        Input::File(file, mut left) => work.lines(|buffer| {
            let room = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let len = file.read(&mut buffer[..room])?;
            left = left.saturating_sub(len as u64);
            Ok(len)
        })?,
    }
    let Report { seen, refused, exit, .. } = work.report;
    match refused {
        0 => Ok(Exit::Ok),
        _ => Err(Fail::new(exit, format!("{refused} of {seen} were refused"))),
    }
}

/// Opens what a path names, but not through a link.
fn open(path: &str, trackers: bool) -> Result<Input, Fail> {
    let cannot = |exit, why: &str| Fail::cannot(exit, "read", path, why);
    let unread = |e| cannot(Exit::Data, &errno(e));
    let name = CString::new(path).map_err(|_| unread(Errno::INVAL))?;
    let cwd = Dir::cwd();
    let file = match cwd.open(&name, Open::Read) {
        Err(Errno::LOOP) => return Err(cannot(Exit::Refused, "it is a symbolic link")),
        // A socket.
        Err(Errno::NXIO) => return Err(cannot(Exit::Data, "it is not a regular file")),
        opened => opened.map_err(unread)?,
    };
    let meta = file.status().map_err(unread)?;
    if meta.is_dir() && trackers {
        let dir = cwd.open_dir(&name).map_err(unread)?;
        let names = names(&dir).map_err(unread)?;
        let Some(names) = names else {
            return Err(cannot(Exit::Data, &format!("it has more than {MAX_FILES} files")));
        };
        return Ok(Input::Directory(dir, names));
    }
    match strange(&meta) {
        Some((exit, why)) => Err(cannot(exit, why)),
        None => Ok(Input::File(file, meta.size)),
    }
}

/// What keeps a file from being read.
fn strange(meta: &Meta) -> Option<(Exit, &'static str)> {
    if !meta.is_file() {
        Some((Exit::Data, "it is not a regular file"))
    } else if meta.uid != euid() {
        Some((Exit::Refused, "it belongs to somebody else"))
    } else if meta.links > 1 {
        Some((Exit::Refused, "it has more than one name"))
    } else {
        None
    }
}

/// The names that end in `.json`, sorted; `None` where they are too many.
fn names(dir: &Dir) -> Result<Option<Vec<CString>>, Errno> {
    let mut names = Vec::new();
    let mut entries = Box::new([core::mem::MaybeUninit::uninit(); 32 * 1024]);
    dir.list(&mut entries[..], |name| {
        let bytes = name.to_bytes();
        if bytes.ends_with(b".json") && !bytes.starts_with(b".") {
            names.push(name.to_owned());
        }
        names.len() <= MAX_FILES
    })?;
    names.sort();
    Ok(Some(names).filter(|names| names.len() <= MAX_FILES))
}

/// The work of one run.
struct Work<'s> {
    start: &'s Start<'s>,
    importer: Importer<'s>,
    /// Whether the lines are those of other trackers.
    trackers: bool,
    report: Report,
}

impl Work<'_> {
    /// Takes all lines over. What has come whole is done before more is waited
    /// for, and its results are out.
    fn lines(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
    ) -> Result<(), Fail> {
        let mut lines = Lines::default();
        loop {
            let more = lines.read(&mut read).map_err(|e| {
                Fail::new(Exit::Data, format!("cannot read the input: {}", errno(e)))
            })?;
            if !more {
                return Ok(());
            }
            let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
            while let Some(Line { number, text }) = lines.next() {
                if text.is_some_and(|text| text.trim_ascii().is_empty()) {
                    continue;
                }
                let mut canonical = String::new();
                let taken = match text {
                    Some(text) => self.one(text, ticking, &mut canonical),
                    None => Err(too_long()),
                };
                self.report.tell(number, None, &canonical, taken)?;
            }
            guard::tick_no_more();
            self.report.out.flush()?;
        }
    }

    /// Takes all files of a directory over, each of which is one object.
    fn files(&mut self, dir: &Dir, names: &[CString]) -> Result<(), Fail> {
        let mut buffer = vec![0; MAX_BYTES + 1];
        let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
        for (name, number) in names.iter().zip(1..) {
            let mut canonical = String::new();
            let taken = load(dir, name, &mut buffer)
                .and_then(|len| self.one(&buffer[..len], ticking, &mut canonical));
            let name = name.to_string_lossy();
            self.report.tell(number, Some(&name), &canonical, taken)?;
        }
        self.report.out.flush()
    }

    fn one(
        &mut self,
        bytes: &[u8],
        ticking: guard::Ticking,
        canonical: &mut String,
    ) -> Result<(), Refusal> {
        if !self.trackers {
            return self.importer.record(bytes, ticking, canonical);
        }
        let told = Told::read(bytes, &mut self.importer.scan)?;
        if self.importer.bridge.is_some() {
            self.importer.record(&told.record(), ticking, canonical)
        } else {
            told.tell(&mut self.importer, self.start.env, ticking, canonical)
        }
    }
}

fn too_long() -> Refusal {
    Fault { at: MAX_BYTES as u32, kind: FaultKind::TooLong }.into()
}

/// Reads a file of a directory; says how long it is.
fn load(dir: &Dir, name: &CStr, buffer: &mut [u8]) -> Result<usize, Refusal> {
    let unread = |e| match e {
        Errno::LOOP => Refusal::new("unreadable", "it is a symbolic link"),
        e => Refusal::new("unreadable", errno(e)),
    };
    let file = dir.open(name, Open::Read).map_err(unread)?;
    if let Some((_, why)) = strange(&file.status().map_err(unread)?) {
        return Err(Refusal::new("unreadable", why));
    }
    match file.read_all(buffer).map_err(unread)? {
        len if len > MAX_BYTES => Err(too_long()),
        len => Ok(len),
    }
}

/// The results, one a line.
struct Report {
    out: Out<Stdout>,
    json: bool,
    seen: u64,
    refused: u64,
    /// How the program ends if something was refused: by the worst of it.
    exit: Exit,
}

impl Report {
    /// Tells of a line or a file.
    fn tell(
        &mut self,
        number: u64,
        file: Option<&str>,
        canonical: &str,
        taken: Result<(), Refusal>,
    ) -> Result<(), Fail> {
        self.seen += 1;
        let refused = taken.err();
        if let Some(refusal) = &refused {
            self.refused += 1;
            if self.exit == Exit::No || refusal.exit == Exit::Io {
                self.exit = refusal.exit;
            }
        }
        if !self.json {
            return match refused {
                None => writeln!(self.out, "accepted {}", Shown(canonical)),
                Some(Refusal { code, why, .. }) => match file {
                    Some(file) => {
                        writeln!(self.out, "refused {code}: {}: {}", Shown(file), Shown(&why))
                    }
                    None => writeln!(self.out, "refused {code}: line {number}: {}", Shown(&why)),
                },
            };
        }
        self.out.append(|line| {
            let mut object = Object::open(line);
            object.int("line", number);
            if let Some(file) = file {
                string(object.key("file"), file, Style::Shown);
            }
            let (result, code, why) = match &refused {
                None => ("accepted", "", ""),
                Some(refusal) => ("refused", refusal.code, refusal.why.as_str()),
            };
            object.str("result", result).str("reason", code);
            string(object.key("detail"), why, Style::Shown);
            string(object.key("canonical_id"), canonical, Style::Shown);
            object.close();
            line.put(b"\n");
        })
    }
}

/// Removes all records of a bridge.
fn retire(start: &Start<'_>, bridge: &str, json: bool) -> Result<Exit, Fail> {
    let (removed, failed) = match find(start.env) {
        Found::Open(store) => imports::retire(&store, bridge)?,
        Found::Missing => (0, None),
        Found::Unavailable(why, root) => return Err(unusable(why, &root)),
    };
    let mut out = stdout();
    if json {
        writeln!(out, "{{\"removed\":{removed}}}")?;
    } else {
        writeln!(out, "removed {removed}")?;
    }
    out.flush()?;
    failed.map_or(Ok(Exit::Ok), Err)
}
