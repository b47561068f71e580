//! The sessions for whoever stays: each look is a run of the maintainer, where
//! there is one, and then a reading of the store, and between two looks there is
//! sleep.
//!
//! The store is watched first and read then, and read again after whatever woke
//! the sleeper, so the last state is never missed; what comes in a burst is read
//! together. Nothing is asked again and again, but where the system has no means
//! to watch.

use super::fail::trouble;
use super::fleet::{Fleet, Tell};
use super::store::{Found, find};
use super::upkeep::{maintain, open};
use crate::cli::Fail;
use crate::store::maintain::{Mode, Outcome};
use crate::store::place::Root;
use crate::store::watch::StoreWatch;
use crate::sys::clock::Now;
use crate::sys::env::Env;
use crate::sys::watch::{Alarm, Jumps, sleep};

/// Milliseconds between two looks where nothing wakes the sleeper.
const TICK_MS: u64 = 500;
/// Least milliseconds between the beginnings of two looks.
const PAUSE_MS: u64 = 50;
/// How many times as long as a look the pause behind it is at least, so that many
/// sessions in which much happens take no more than a fifth of a processor.
const REST: u64 = 4;

/// The sessions, kept up to date.
pub struct SessionFeed<'e> {
    env: &'e Env<'e>,
    /// Whether a run of the maintainer comes before each look.
    maintains: bool,
    /// The sessions as of the last look.
    pub fleet: Fleet,
    watch: Option<StoreWatch>,
    jumps: Option<Jumps>,
    /// When the next look may begin, on CLOCK_MONOTONIC.
    next_ms: u64,
    /// Whether another one is due.
    due: bool,
}

/// What a look found.
#[derive(Debug)]
pub enum Place {
    /// The store.
    Open,
    /// None: it may be about to be made.
    Missing,
    /// One that cannot be used, and why.
    Unavailable(String),
}

/// Why a sleep is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// There may be something to look at.
    ToLook,
    /// One of the caller's own alarms went off, or his time is over.
    Called,
}

impl<'e> SessionFeed<'e> {
    /// A feed that only reads.
    pub fn reading(env: &'e Env<'e>) -> SessionFeed<'e> {
        SessionFeed {
            env,
            maintains: false,
            fleet: Fleet::default(),
            watch: None,
            jumps: Jumps::watch(),
            next_ms: 0,
            due: true,
        }
    }

    /// A feed that runs the maintainer before each look, which the store's stamp
    /// limits to one run in five seconds of all who do so.
    pub fn maintaining(env: &'e Env<'e>) -> SessionFeed<'e> {
        SessionFeed { maintains: true, ..SessionFeed::reading(env) }
    }

    /// Looks, and tells of every difference to the last look. The store is closed
    /// again, for a directory that is held open does not tell of its removal.
    pub fn look(&mut self, tell: &mut Tell<'_>) -> Result<Place, Fail> {
        if self.watch.is_none() {
            let root = Root::find(self.env).ok();
            self.watch = root.and_then(|root| StoreWatch::begin(&root).ok());
        }
        let began_ms = Now::read().mono_ms;
        if self.maintains {
            self.maintain(Mode::Due);
        }
        self.has_changed();
        self.due = false;
        let (store, place) = match find(self.env) {
            Found::Open(store) => (Some(store), Place::Open),
            Found::Missing => (None, Place::Missing),
            Found::Unavailable(why, root) => (None, Place::Unavailable(trouble(why, &root))),
        };
        self.fleet.look(store.as_ref(), tell)?;
        let now_ms = Now::read().mono_ms;
        let took_ms = now_ms.saturating_sub(began_ms);
        self.next_ms = (began_ms + PAUSE_MS).max(now_ms.saturating_add(REST * took_ms));
        Ok(place)
    }

    /// Runs the maintainer; says whether it could work, or another one does. One
    /// that cannot leaves the sessions as they are.
    pub fn maintain(&self, mode: Mode) -> bool {
        match open(self.env, mode) {
            Ok(Some(store)) => !matches!(maintain(&store, mode, self.env), Outcome::Unavailable(_)),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// When the next look is due without any change, by what the sessions tell.
    fn due_ms(&self) -> u64 {
        let now = Now::read();
        let turns = self.fleet.turns_ms();
        let turns = turns.map(|ms| now.mono_ms.saturating_add(ms.saturating_sub(now.wall_ms)));
        let tick = self.watch.is_none().then_some(now.mono_ms + TICK_MS);
        [turns, tick].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Sleeps until a look is due, or until one of the caller's own alarms goes off:
    /// `is_called` says whether it did, and is asked once before the sleep. At
    /// `own_ms` of CLOCK_MONOTONIC the caller is woken in any case.
    pub fn sleep(&mut self, own: &[Alarm<'_>], own_ms: u64, is_called: impl Fn() -> bool) -> Woken {
        let due_ms = self.due_ms();
        loop {
            if is_called() || Now::read().mono_ms >= own_ms {
                return Woken::Called;
            }
            let jumped = self.jumps.as_ref().is_some_and(Jumps::has_come);
            let now_ms = Now::read().mono_ms;
            self.due |= self.has_changed() || jumped || now_ms >= due_ms;
            let until_ms = if self.due { self.next_ms } else { due_ms };
            if self.due && now_ms >= until_ms {
                return Woken::ToLook;
            }
            // What changes during the pause is seen by the look that follows it.
            let store = self.watch.iter().filter(|_| !self.due).map(StoreWatch::alarm);
            let jumps = self.jumps.iter().filter(|_| !self.due).map(Jumps::alarm);
            let alarms: Vec<_> = own.iter().copied().chain(store).chain(jumps).collect();
            sleep(&alarms, until_ms.min(own_ms).saturating_sub(now_ms));
        }
    }

    fn has_changed(&mut self) -> bool {
        match self.watch.as_mut().map(StoreWatch::has_changed) {
            None => false,
            Some(Ok(changed)) => changed,
            Some(Err(_)) => {
                self.watch = None;
                true
            }
        }
    }
}
