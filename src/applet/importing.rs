//! An input that goes on, imported line by line as it comes.

use super::fail::no_timer;
use super::imports::{Bridge, Importer};
use super::lines::{Line, Lines};
use super::store::LOCKS_MS;
use crate::cli::Fail;
use crate::probe::Here;
use crate::record::{Fault, FaultKind, MAX_BYTES};
use crate::store::Store;
use crate::sys::fs::Errno;
use crate::sys::guard;

/// The import of one bridge under way.
pub struct Importing<'s> {
    importer: Importer<'s>,
    lines: Lines,
}

impl<'s> Importing<'s> {
    /// Begins at the first line of a bridge's input.
    pub fn new(store: &'s Store, bridge: &str) -> Result<Importing<'s>, Fail> {
        let importer = Importer {
            store,
            bridge: Some(Bridge::find(bridge, store)?),
            here: Here::read(),
            scratch: Box::default(),
            scan: Box::default(),
        };
        Ok(Importing { importer, lines: Lines::default() })
    }

    /// Reads once and imports the lines that are then complete; tells of those
    /// that are refused, by number and reason. Says whether there may be more. An
    /// input that has nothing for now says EAGAIN.
    pub fn step(
        &mut self,
        read: &mut dyn FnMut(&mut [u8]) -> Result<usize, Errno>,
        refused: &mut dyn FnMut(u64, &str),
    ) -> Result<bool, Fail> {
        let more = match self.lines.read(read) {
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(_) => return Ok(false),
            Ok(more) => more,
        };
        let ticking = guard::tick_only(LOCKS_MS).ok_or_else(no_timer)?;
        while let Some(Line { number, text }) = self.lines.next() {
            let taken = match text {
                Some(text) if text.trim_ascii().is_empty() => continue,
                Some(text) => self.importer.record(text, ticking, &mut String::new()),
                None => Err(Fault { at: MAX_BYTES as u32, kind: FaultKind::TooLong }.into()),
            };
            if let Err(refusal) = taken {
                refused(number, &refusal.why);
            }
        }
        guard::tick_no_more();
        Ok(more)
    }
}
