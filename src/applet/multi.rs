//! `tongs`: the one file behind all names.

use std::ffi::CString;

use super::fail::{end, errno, stdout, words};
use super::{APPLETS, Start, settle_command};
use crate::cli::{Exit, Fail};
use crate::sys::fs::{Dir, Errno};

const HELP: &str = "\
Usage: tongs PROGRAM [ARGUMENT ...]
       tongs --list | --version | --install-links DIR

Runs one of its programs, which are also installed under their own names.

  --list               print the programs' names
  --install-links DIR  make the names in DIR, as links to the file tongs there
  -h, --help           print this help
  --version            print the version

Example: tongs agents status

Exit codes: 0 done, 64 usage, 74 a link could not be made, 77 something else is in
a link's place; else the program's.
See tongs(1).
";

/// Runs `tongs`.
#[inline(never)] // not on the way of a hook
pub fn run(start: &Start<'_>) -> i32 {
    let named = start.args.get(1).and_then(|word| {
        APPLETS.iter().find(|a| a.name.strip_prefix("tongs-").map(str::as_bytes) == Some(word))
    });
    let own = start.args.first().is_some_and(|arg| super::base_name(arg) == b"tongs");
    if let Some(applet) = named.filter(|_| own) {
        return (applet.run)(&Start { args: &start.args[1..], ..*start });
    }
    settle_command();
    end("tongs", if own { other(start) } else { unknown_name(start) })
}

/// A name that is none of ours is never taken for one, whatever the arguments.
fn unknown_name(start: &Start<'_>) -> Result<Exit, Fail> {
    let name =
        start.args.first().map_or("".into(), |arg| String::from_utf8_lossy(super::base_name(arg)));
    Err(Fail::new(Exit::Usage, format!("'{name}' is no program of tongs (see 'tongs --list')")))
}

fn other(start: &Start<'_>) -> Result<Exit, Fail> {
    let words = words(start.args.get(1..).unwrap_or(&[]))?;
    let mut out = stdout();
    match words[..] {
        ["--help" | "-h"] => out.put(HELP.as_bytes())?,
        ["--version"] => writeln!(out, "tongs {}", env!("CARGO_PKG_VERSION"))?,
        ["--list"] => {
            for applet in APPLETS {
                writeln!(out, "{:<19} {}", applet.name, applet.about)?;
            }
        }
        ["--install-links", dir] => return install_links(dir),
        [] => {
            out.put(HELP.as_bytes())?;
            out.flush()?;
            return Ok(Exit::Usage);
        }
        [word, ..] => {
            return Err(Fail::new(
                Exit::Usage,
                format!("unknown program or option '{word}' (see 'tongs --help')"),
            ));
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Makes the names in a directory, each a relative link to `tongs` beside it.
/// A link of ours is left as it is; anything else in its place is refused
/// before the first link is made.
fn install_links(dir: &str) -> Result<Exit, Fail> {
    let cannot = |verb, path: &str, e| Fail::cannot(Exit::Io, verb, path, errno(e));
    let path = CString::new(dir).map_err(|_| cannot("open", dir, Errno::INVAL))?;
    let open = Dir::cwd().follow_dir(&path).map_err(|e| cannot("open", dir, e))?;
    if open.entry(c"tongs").is_err() {
        return Err(Fail::cannot(
            Exit::Refused,
            "make links in",
            dir,
            "there is no file 'tongs' in it",
        ));
    }
    let mut missing = Vec::new();
    for applet in APPLETS {
        let name =
            CString::new(applet.name).map_err(|_| cannot("link", applet.name, Errno::INVAL))?;
        let mut target = [0; 64];
        match open.read_link(&name, &mut target) {
            Ok(b"tongs") => {}
            Err(Errno::NOENT) => missing.push((applet, name)),
            Ok(_) | Err(Errno::INVAL) => {
                let path = format!("{dir}/{}", applet.name);
                return Err(Fail::cannot(
                    Exit::Refused,
                    "make",
                    path,
                    "something else is in its place",
                ));
            }
            Err(e) => return Err(cannot("read", applet.name, e)),
        }
    }
    for (applet, name) in missing {
        open.link(c"tongs", &name)
            .map_err(|e| cannot("make", &format!("{dir}/{}", applet.name), e))?;
    }
    Ok(Exit::Ok)
}
