//! `tongs-agents status`: the live sessions, as a table, as JSON, as columns or
//! as one line. Only reads.

use argh::FromArgs;

use super::super::Start;
use super::super::fail::{errno, stdout, trouble};
use super::super::store::{Found, find};
use super::super::view::{self, Filter, Row};
use super::{bad_value, check_version, hint, options};
use crate::cli::{Exit, Fail, Shown, push_cut, tmux};
use crate::record::out::{Sink, int};
use crate::record::{Checked, Status};
use crate::store::annotate::{Derived, annotate_session, put_session};
use crate::store::read::Tally;
use crate::store::seen::Marks;
use crate::store::{Reader, Store, maintain};
use crate::sys::clock::Now;
use crate::sys::env::Env;

/// Cells of the summary line, unless `--width` says how many.
const LINE: usize = 60;

/// Show the live sessions. Only reads.
#[derive(FromArgs)]
#[argh(
    example = "tongs-agents status --attention -o short_id,repo,detail",
    note = "See tongs-agents(1).",
    error_code(0, "done"),
    error_code(1, "the store is unavailable; with --exit-code also: nothing matched"),
    error_code(64, "usage"),
    error_code(74, "the store could not be read or standard output not be written")
)]
struct Options {
    /// print one JSON object
    #[argh(switch)]
    json: bool,
    /// the version of the JSON output: 1
    #[argh(option, arg_name = "N")]
    json_version: Option<u32>,
    /// print one JSON object a session, each on a line
    #[argh(switch)]
    jsonl: bool,
    /// print these fields, separated by commas, as tab-separated columns
    #[argh(option, short = 'o', arg_name = "FIELD,...")]
    output: Option<String>,
    /// begin columns with a line of their names
    #[argh(switch)]
    header: bool,
    /// end column lines with NUL instead of a newline
    #[argh(switch, short = 'z')]
    null: bool,
    /// print a short summary for a prompt: plain or tmux; nothing when nobody asks for you
    #[argh(option, arg_name = "STYLE")]
    line: Option<String>,
    /// cells of this summary at most; default: 60
    #[argh(option, arg_name = "N")]
    width: Option<usize>,
    /// also show records that better ones hide
    #[argh(switch)]
    all: bool,
    /// only sessions of this harness; may be repeated
    #[argh(option, arg_name = "H")]
    harness: Vec<String>,
    /// only sessions with this status; may be repeated
    #[argh(option, arg_name = "S")]
    status: Vec<String>,
    /// only sessions that need attention
    #[argh(switch)]
    attention: bool,
    /// order: attention, status, age or repo
    #[argh(option, arg_name = "KEY")]
    sort: Option<String>,
    /// only sessions in this pane of a terminal multiplexer, such as %3
    #[argh(option, arg_name = "ID")]
    pane: Option<String>,
    /// only sessions that their harness can take up again
    #[argh(switch)]
    resumable: bool,
    /// print nothing
    #[argh(switch, short = 'q')]
    quiet: bool,
    /// exit 1 when no session matches
    #[argh(switch)]
    exit_code: bool,
}

/// What is printed.
enum Form {
    Table,
    Json,
    Lines,
    Columns(Vec<String>),
    Summary { tmux: bool, width: usize },
    Nothing,
}

/// Runs the command.
pub fn run(words: &[&str], start: &Start<'_>) -> Result<Exit, Fail> {
    let env = start.env;
    let options: Options = options("status", words)?;
    let form = form(&options)?;
    let filter = Filter {
        harnesses: options.harness,
        statuses: options.status.iter().map(|s| status(s)).collect::<Result<_, _>>()?,
        attention: options.attention,
        pane: options.pane,
        resumable: options.resumable,
    };
    let order = match options.sort.as_deref() {
        Some(key) => {
            Some(view::Order::find(key).ok_or_else(|| bad_value("sort", key, view::Order::NAMES))?)
        }
        None if matches!(form, Form::Table) => Some(view::Order::Attention),
        None => None,
    };
    let now = Now::read();
    let store = match find(env) {
        Found::Open(store) => store,
        Found::Missing => {
            Print { form, order, env, header: options.header, end: end_of(options.null) }
                .nothing(&now, "missing")?;
            return Ok(if options.exit_code { Exit::No } else { Exit::Ok });
        }
        Found::Unavailable(why, root) => {
            if !matches!(form, Form::Nothing) {
                hint(&trouble(why, &root));
            }
            Print { form, order, env, header: options.header, end: end_of(options.null) }
                .nothing(&now, "unavailable")?;
            return Ok(Exit::No);
        }
    };
    let quiet = matches!(form, Form::Nothing | Form::Summary { .. });
    let print = Print { form, order, env, header: options.header, end: end_of(options.null) };
    let shown = print.store(&store, &now, &filter, options.all)?;
    if !quiet && maintain::is_overdue(&store, now.secs()) {
        hint("nobody has maintained the store for a while: run 'tongs-agents cleanup'");
    }
    Ok(if options.exit_code && shown == 0 { Exit::No } else { Exit::Ok })
}

fn end_of(null: bool) -> &'static [u8] {
    if null { b"\0" } else { b"\n" }
}

fn form(options: &Options) -> Result<Form, Fail> {
    check_version(options.json_version)?;
    let json = options.json || options.json_version.is_some();
    let forms = [json, options.jsonl, options.output.is_some(), options.line.is_some()];
    if forms.iter().filter(|f| **f).count() > 1 {
        return Err(Fail::new(
            Exit::Usage,
            "only one of --json, --jsonl, --output and --line can be given",
        ));
    }
    if (options.header || options.null) && options.output.is_none() {
        return Err(Fail::new(Exit::Usage, "--header and -z go with -o"));
    }
    if options.width.is_some() && options.line.is_none() {
        return Err(Fail::new(Exit::Usage, "--width goes with --line"));
    }
    if options.width == Some(0) {
        return Err(Fail::new(Exit::Usage, "--width is at least 1"));
    }
    // Names are checked whether or not anything is printed.
    let columns = options.output.as_deref().map(view::fields).transpose().map_err(|bad| {
        Fail::new(
            Exit::Usage,
            format!("unknown field '{bad}': the fields are {}", view::field_names().join(" ")),
        )
    })?;
    let line = match options.line.as_deref() {
        None => None,
        Some("plain") => Some(false),
        Some("tmux") => Some(true),
        Some(other) => return Err(bad_value("line", other, &["plain", "tmux"])),
    };
    Ok(match (columns, line) {
        _ if options.quiet => Form::Nothing,
        (Some(columns), _) => Form::Columns(columns),
        (_, Some(tmux)) => Form::Summary { tmux, width: options.width.unwrap_or(LINE) },
        _ if json => Form::Json,
        _ if options.jsonl => Form::Lines,
        _ => Form::Table,
    })
}

fn status(name: &str) -> Result<Status, Fail> {
    Status::find(name).ok_or_else(|| bad_value("status", name, &Status::ALL.map(Status::name)))
}

struct Print<'p> {
    form: Form,
    order: Option<view::Order>,
    env: &'p Env<'p>,
    header: bool,
    end: &'static [u8],
}

/// Counts of the sessions shown.
#[derive(Default)]
struct Summary {
    total: u64,
    by_status: [u64; Status::ALL.len()],
    needs_attention: u64,
}

impl Summary {
    fn count(&mut self, status: Option<Status>, needs_attention: bool) {
        self.total += 1;
        self.needs_attention += u64::from(needs_attention);
        if let Some(at) = Status::ALL.iter().position(|s| Some(*s) == status) {
            self.by_status[at] += 1;
        }
    }

    fn put(&self, sink: &mut impl Sink) {
        sink.put(b"{\"total\":");
        int(sink, self.total);
        for (status, count) in Status::ALL.iter().zip(self.by_status) {
            sink.put(b",\"");
            sink.put(status.name().as_bytes());
            sink.put(b"\":");
            int(sink, count);
        }
        sink.put(b",\"needs_attention\":");
        int(sink, self.needs_attention);
        sink.put(b"}");
    }
}

/// The start of the JSON object, up to the first session.
fn put_head(sink: &mut impl Sink, store: &str, now: &Now) {
    sink.put(b"{\"schema_version\":1,\"store\":\"");
    sink.put(store.as_bytes());
    sink.put(b"\",\"generated_at\":");
    int(sink, now.secs());
    sink.put(b",\"sessions\":[");
}

fn put_tail(sink: &mut impl Sink, summary: &Summary, skipped: u64) {
    sink.put(b"],\"summary\":");
    summary.put(sink);
    sink.put(b",\"skipped\":");
    int(sink, skipped);
    sink.put(b"}\n");
}

impl Print<'_> {
    /// Prints a store without sessions.
    fn nothing(&self, now: &Now, store: &str) -> Result<(), Fail> {
        let mut out = stdout();
        match &self.form {
            Form::Json => out.append(|sink| {
                put_head(sink, store, now);
                put_tail(sink, &Summary::default(), 0);
            })?,
            Form::Table if store == "missing" => out.put(b"No sessions.\n")?,
            Form::Columns(fields) if self.header => self.columns_head(&mut out, fields)?,
            _ => {}
        }
        out.flush()
    }

    /// Prints the sessions of a store; returns how many.
    fn store(&self, store: &Store, now: &Now, filter: &Filter, all: bool) -> Result<u64, Fail> {
        match (&self.form, self.order) {
            (Form::Json | Form::Lines, None) => self.stream(store, now, filter, all),
            _ => self.gather(store, now, filter, all),
        }
    }

    /// Prints JSON as the records are read, in directory order: nothing of them
    /// is kept.
    fn stream(&self, store: &Store, now: &Now, filter: &Filter, all: bool) -> Result<u64, Fail> {
        let whole = matches!(self.form, Form::Json);
        let mut out = stdout();
        let mut summary = Summary::default();
        let mut failed = None;
        if whole {
            out.append(|sink| put_head(sink, "ok", now))?;
        }
        let tally = each(store, now, all, |record, derived| {
            if !filter.takes(record, derived) {
                return true;
            }
            let first = summary.total == 0;
            summary.count(record.status, derived.needs_attention);
            let put = out.append(|sink| {
                if whole && !first {
                    sink.put(b",");
                }
                put_session(sink, record, derived);
                if !whole {
                    sink.put(b"\n");
                }
            });
            failed = put.err();
            failed.is_none()
        })?;
        if let Some(fail) = failed {
            return Err(fail);
        }
        if whole {
            out.append(|sink| put_tail(sink, &summary, tally.skipped))?;
        }
        out.flush()?;
        Ok(summary.total)
    }

    /// Prints what needs all sessions first: an order, or widths.
    fn gather(&self, store: &Store, now: &Now, filter: &Filter, all: bool) -> Result<u64, Fail> {
        let mut rows = Vec::new();
        let tally = each(store, now, all, |record, derived| {
            if filter.takes(record, derived) {
                rows.push(Row::of(record, derived));
            }
            true
        })?;
        if let Some(order) = self.order {
            order.sort(&mut rows);
        }
        let mut out = stdout();
        match &self.form {
            Form::Table if rows.is_empty() => out.put(b"No sessions.\n")?,
            Form::Table => view::put_table(&mut out, self.env, &view::table(&rows, true))?,
            Form::Columns(fields) => self.columns(&mut out, fields, &rows)?,
            Form::Summary { tmux, width } => {
                out.put(summary_line(&rows, *tmux, *width).as_bytes())?;
            }
            Form::Lines => {
                for row in &rows {
                    out.put(&row.json)?;
                    out.put(b"\n")?;
                }
            }
            Form::Json => {
                let mut summary = Summary::default();
                out.append(|sink| put_head(sink, "ok", now))?;
                for row in &rows {
                    out.put(if summary.total > 0 { b"," } else { b"" })?;
                    out.put(&row.json)?;
                    summary.count(row.status, row.derived.needs_attention);
                }
                out.append(|sink| put_tail(sink, &summary, tally.skipped))?;
            }
            Form::Nothing => {}
        }
        out.flush()?;
        if tally.skipped > 0 && matches!(self.form, Form::Table) {
            let files = if tally.skipped == 1 { "file is" } else { "files are" };
            hint(&format!("{} {files} not readable as records", tally.skipped));
        }
        Ok(rows.len() as u64)
    }

    fn columns_head<W: std::io::Write>(
        &self,
        out: &mut crate::cli::Out<W>,
        fields: &[String],
    ) -> Result<(), Fail> {
        out.put(fields.join("\t").as_bytes())?;
        out.put(self.end)
    }

    fn columns<W: std::io::Write>(
        &self,
        out: &mut crate::cli::Out<W>,
        fields: &[String],
        rows: &[Row],
    ) -> Result<(), Fail> {
        if self.header {
            self.columns_head(out, fields)?;
        }
        for row in rows {
            let cells: Vec<String> =
                fields.iter().map(|f| Shown(&row.field(f)).to_string()).collect();
            out.put(cells.join("\t").as_bytes())?;
            out.put(self.end)?;
        }
        Ok(())
    }
}

/// Reads the sessions: the live ones, or all records.
fn each(
    store: &Store,
    now: &Now,
    all: bool,
    mut each: impl FnMut(&Checked<'_>, &Derived) -> bool,
) -> Result<Tally, Fail> {
    let (view, mut reader, marks) = (view::of(now), Reader::default(), Marks::read(store));
    let read = if all {
        store.read_stored_sessions(&mut reader, |_, record| {
            each(record, &annotate_session(record, &view, marks.of(record, &view)))
        })
    } else {
        store.read_sessions(&mut reader, &view, &marks, each)
    };
    read.map_err(|e| Fail::new(Exit::Io, format!("cannot read the store: {}", errno(e))))
}

/// The summary for a prompt: how many ask for you, and the first of them.
fn summary_line(rows: &[Row], for_tmux: bool, width: usize) -> String {
    let mut asking: Vec<&Row> = rows.iter().filter(|row| row.asks()).collect();
    asking.sort_by_key(|row| view::rank(row));
    let Some(first) = asking.first() else { return String::new() };
    let mut counts = Vec::new();
    for status in [Status::Waiting, Status::Error, Status::Idle] {
        let count = asking.iter().filter(|row| row.status == Some(status)).count();
        if count > 0 {
            counts.push(format!("{count} {}", status.name()));
        }
    }
    let text = format!("{}: {} {}", counts.join(", "), first.place(), first.detail);
    let mut line = String::new();
    push_cut(&mut line, text.trim_end(), width);
    if for_tmux {
        line = tmux(&line);
    }
    line.push('\n');
    line
}
