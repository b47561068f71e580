//! The processes below a process.
//!
//! Where the kernel lists a process's children, only the tree is read: seven
//! system calls a process, and four more a further thread. A look at all
//! processes, which is taken elsewhere, is three for each on the machine.

use std::collections::HashSet;

use super::{Process, Unread, system};

/// How far a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Generations below the first process.
    pub depth: usize,
    /// Processes, the first one included.
    pub nodes: usize,
}

impl Limits {
    /// Deep enough for an agent in wrappers in a shell, and bounded.
    pub const DEFAULT: Limits = Limits { depth: 5, nodes: 100 };
}

/// A process and those below it, breadth first.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Each one with its distance from the first.
    pub nodes: Vec<(Process, usize)>,
    /// Whether the limits left some out.
    pub truncated: bool,
}

impl Tree {
    /// Walks down from the process with this pid.
    pub fn below(pid: u32, limits: Limits) -> Result<Tree, Unread> {
        let root = Process::read(pid)?;
        let mut all = None;
        Ok(walk(root, limits, |parent| {
            system::children(&parent).unwrap_or_else(|| {
                let all = all.get_or_insert_with(system::all).iter();
                all.filter(|process| process.ppid == parent.pid).copied().collect()
            })
        }))
    }
}

/// Walks down, to each process once, whatever their parents are said to be.
fn walk(root: Process, limits: Limits, mut children: impl FnMut(Process) -> Vec<Process>) -> Tree {
    let mut tree = Tree { nodes: vec![(root, 0)], truncated: false };
    let mut seen = HashSet::from([root.pid]);
    let mut at = 0;
    while let Some(&(parent, depth)) = tree.nodes.get(at) {
        at += 1;
        for child in children(parent) {
            if seen.contains(&child.pid) {
                continue;
            }
            // Whatever is left is at this depth or below.
            if depth == limits.depth || tree.nodes.len() >= limits.nodes {
                return Tree { truncated: true, ..tree };
            }
            seen.insert(child.pid);
            tree.nodes.push((child, depth + 1));
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks a tree that is given as pairs of parent and child.
    fn walked(edges: &[(u32, u32)], depth: usize, nodes: usize) -> (Vec<(u32, usize)>, bool) {
        let process = |pid, ppid| {
            let mut process = Process::read(std::process::id()).unwrap();
            (process.pid, process.ppid) = (pid, ppid);
            process
        };
        let tree = walk(process(1, 0), Limits { depth, nodes }, |parent| {
            let of = edges.iter().filter(|(p, _)| *p == parent.pid);
            of.map(|(p, child)| process(*child, *p)).collect()
        });
        (tree.nodes.iter().map(|(p, depth)| (p.pid, *depth)).collect(), tree.truncated)
    }

    #[test]
    fn a_walk_is_breadth_first_and_within_its_limits() {
        let edges = [(1, 2), (1, 3), (2, 4), (3, 5), (4, 6)];
        let all = vec![(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)];
        assert_eq!(walked(&edges, 5, 100), (all.clone(), false));
        assert_eq!(walked(&edges, 3, 6), (all.clone(), false));
        assert_eq!(walked(&edges, 2, 100), (all[..5].to_vec(), true));
        assert_eq!(walked(&edges, 0, 100), (all[..1].to_vec(), true));
        assert_eq!(walked(&edges, 5, 4), (all[..4].to_vec(), true));
        assert_eq!(walked(&[], 0, 1), (all[..1].to_vec(), false));
    }

    #[test]
    fn a_circle_ends_the_walk() {
        let edges = [(1, 2), (2, 3), (3, 1), (3, 3), (2, 2)];
        assert_eq!(walked(&edges, 50, 100), (vec![(1, 0), (2, 1), (3, 2)], false));
    }
}
