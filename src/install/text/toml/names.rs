//! What TOML allows to be defined, and only once.

use std::collections::HashMap;

/// The names of a document, as a tree of tables.
pub struct Names {
    spaces: Vec<Space>,
}

#[derive(Default)]
struct Space {
    by: By,
    names: HashMap<String, usize>,
}

/// What defined a name.
#[derive(Clone, Copy, Default, PartialEq)]
enum By {
    /// A table that only headers of tables below it name.
    #[default]
    Below,
    /// A table with its own header.
    Header,
    /// A table that a dotted key below this header made.
    Dotted(usize),
    /// An array of tables, and its last element.
    Array(usize),
    /// A value, which nothing can be added to.
    Value,
}

impl Default for Names {
    fn default() -> Names {
        Names { spaces: vec![Space::default()] }
    }
}

impl Names {
    /// The root table.
    pub fn root(&self) -> usize {
        0
    }

    fn add(&mut self, by: By) -> usize {
        self.spaces.push(Space { by, names: HashMap::new() });
        self.spaces.len() - 1
    }

    fn find(&self, space: usize, name: &str) -> Option<(usize, By)> {
        let found = *self.spaces.get(space)?.names.get(name)?;
        Some((found, self.spaces.get(found)?.by))
    }

    /// Gives a name in `space` to something new.
    fn name(&mut self, space: usize, name: &str, by: By) -> usize {
        let new = self.add(by);
        if let Some(space) = self.spaces.get_mut(space) {
            space.names.insert(name.to_string(), new);
        }
        new
    }

    fn mark(&mut self, space: usize, by: By) {
        if let Some(space) = self.spaces.get_mut(space) {
            space.by = by;
        }
    }

    /// Opens a table by its header, or the next element of an array by its;
    /// `None` where the header may not stand.
    pub fn open(&mut self, path: &[String], array: bool) -> Option<usize> {
        let (last, above) = path.split_last()?;
        let mut at = self.root();
        for name in above {
            at = match self.find(at, name) {
                None => self.name(at, name, By::Below),
                Some((_, By::Value)) => return None,
                Some((_, By::Array(element))) => element,
                Some((table, _)) => table,
            };
        }
        match (self.find(at, last), array) {
            (None, false) => Some(self.name(at, last, By::Header)),
            (Some((table, By::Below)), false) => {
                self.mark(table, By::Header);
                Some(table)
            }
            (None, true) => {
                let element = self.add(By::Header);
                self.name(at, last, By::Array(element));
                Some(element)
            }
            (Some((array, By::Array(_))), true) => {
                let element = self.add(By::Header);
                self.mark(array, By::Array(element));
                Some(element)
            }
            _ => None,
        }
    }

    /// Defines a key in a table, below the header with the number `header`;
    /// whether it may stand there.
    pub fn define(&mut self, table: usize, key: &[String], header: usize) -> bool {
        let Some((last, above)) = key.split_last() else { return false };
        let mut at = table;
        for name in above {
            at = match self.find(at, name) {
                None => self.name(at, name, By::Dotted(header)),
                Some((table, By::Below)) => {
                    self.mark(table, By::Dotted(header));
                    table
                }
                Some((table, By::Dotted(by))) if by == header => table,
                Some(_) => return false,
            };
        }
        let free = self.find(at, last).is_none();
        if free {
            self.name(at, last, By::Value);
        }
        free
    }
}
