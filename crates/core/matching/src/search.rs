//! One search for an augmenting path: a tree grows from an unmatched vertex
//! while duals change, until it reaches another unmatched vertex.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::blossom::{Label, Link, NONE, State};
use crate::matrix::Matrix;

/// Neighbours of each vertex in the sparse graph.
pub(crate) type Neighbours = Vec<Vec<u32>>;

/// When something happens to the tree; of two things at a time first what ends
/// the search (`false`). Edges: both ends; odd blossoms that must open: the node
/// and `NONE`.
type Event = Reverse<(i64, bool, u32, u32)>;

/// Grows one tree.
pub(crate) struct Search<'a> {
    matrix: &'a Matrix,
    near: &'a Neighbours,
    state: &'a mut State,
    events: BinaryHeap<Event>,
    /// Nodes that were labelled, also those that a blossom has swallowed since.
    labelled: Vec<u32>,
}

/// Matches `root` and one more vertex. `spare_mate` is an unmatched vertex to
/// fall back on where the sparse graph has no way out.
pub(crate) fn augment(
    matrix: &Matrix,
    near: &Neighbours,
    state: &mut State,
    events: &mut Vec<Event>,
    root: u32,
    spare_mate: u32,
) {
    state.time = 0;
    let mut heap = std::mem::take(events);
    heap.clear();
    let mut search =
        Search { matrix, near, state, events: BinaryHeap::from(heap), labelled: Vec::new() };
    search.enter_even(root, None);
    search.offer(root, spare_mate);
    search.run();
    *events = search.events.into_vec();
}

impl Search<'_> {
    fn slack(&self, u: u32, v: u32) -> i64 {
        self.matrix.at(u, v) - self.state.dual(u) - self.state.dual(v)
    }

    fn run(&mut self) {
        while let Some(Reverse((time, _, a, b))) = self.events.pop() {
            if b == NONE {
                let node = &self.state.nodes[a as usize];
                // A node that was opened or swallowed leaves its event behind.
                if node.parent == NONE && node.label == Label::Odd && node.z <= time {
                    self.state.time = time;
                    self.open(a);
                }
                continue;
            }
            if self.state.top[a as usize] == self.state.top[b as usize] {
                continue;
            }
            let (la, lb) = (self.state.label_of(a), self.state.label_of(b));
            let (u, v, other) = match (la, lb) {
                (Label::Even, other) => (a, b, other),
                (other, Label::Even) => (b, a, other),
                _ => continue,
            };
            // Edges of nodes that have been odd meanwhile are tight later.
            let passed = time - self.state.time;
            let due = match other {
                Label::Even => 2 * passed,
                Label::Free => passed,
                Label::Odd => continue,
            };
            if self.slack(u, v) > due {
                continue;
            }
            self.state.time = time;
            if other == Label::Even {
                self.close(u, v);
            } else if self.grow(u, v) {
                break;
            }
        }
        for node in std::mem::take(&mut self.labelled) {
            if self.state.nodes[node as usize].parent == NONE {
                self.state.relabel(node, Label::Free);
            }
            self.state.nodes[node as usize].entered = None;
        }
    }

    /// Takes the tight edge from an even `u` to a free `v`. True if `v` was
    /// unmatched and the search is over.
    fn grow(&mut self, u: u32, v: u32) -> bool {
        let node = self.state.top[v as usize];
        let base = self.state.nodes[node as usize].base;
        let mate = self.state.mate[base as usize];
        if mate == NONE {
            self.flip(u, v);
            return true;
        }
        self.enter_odd(node, (u, v));
        let next = self.state.top[mate as usize];
        self.enter_even(next, Some((base, mate)));
        false
    }

    fn enter_odd(&mut self, node: u32, by: Link) {
        self.state.relabel(node, Label::Odd);
        self.state.nodes[node as usize].entered = Some(by);
        self.labelled.push(node);
        if self.state.is_blossom(node) {
            self.events.push(Reverse((self.state.nodes[node as usize].z, true, node, NONE)));
        }
    }

    fn enter_even(&mut self, node: u32, by: Option<Link>) {
        self.state.relabel(node, Label::Even);
        self.state.nodes[node as usize].entered = by;
        self.labelled.push(node);
        for k in 0..self.state.nodes[node as usize].vertices.len() {
            self.scan(self.state.nodes[node as usize].vertices[k]);
        }
    }

    /// Offers all edges of a vertex that has become even.
    fn scan(&mut self, u: u32) {
        let near = self.near;
        for &v in &near[u as usize] {
            self.offer(u, v);
        }
    }

    /// Notes when the edge from an even `u` to `v` becomes tight.
    fn offer(&mut self, u: u32, v: u32) {
        let state = &*self.state;
        let node = state.top[v as usize];
        if node == state.top[u as usize] {
            return;
        }
        let rest = self.matrix.at(u, v) - state.y[u as usize] - state.y[v as usize];
        let to = &state.nodes[node as usize];
        match to.label {
            Label::Free => {
                let matched = state.mate[to.base as usize] != NONE;
                self.events.push(Reverse((rest, matched, u, v)));
            }
            Label::Even => self.events.push(Reverse((rest / 2, true, u, v))),
            Label::Odd => {}
        }
    }

    /// Shrinks the cycle that the tight edge between two even nodes closes.
    fn close(&mut self, u: u32, v: u32) {
        let (left, right) = (self.to_root(u), self.to_root(v));
        // The two ways to the root share their ends.
        let shared = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b).count();
        let (mine, theirs) = (left.len() - shared, right.len() - shared);
        let mut children = vec![left[mine]];
        let mut joints = Vec::new();
        let entered = |node: u32| self.state.nodes[node as usize].entered;
        for &node in left[..mine].iter().rev() {
            children.push(node);
            joints.extend(entered(node));
        }
        joints.push((u, v));
        for &node in &right[..theirs] {
            children.push(node);
            joints.extend(entered(node).map(|(p, q)| (q, p)));
        }
        let risen: Vec<u32> = children
            .iter()
            .filter(|&&child| self.state.nodes[child as usize].label == Label::Odd)
            .flat_map(|&child| self.state.nodes[child as usize].vertices.iter().copied())
            .collect();
        let blossom = self.state.shrink(children, joints);
        self.state.relabel(blossom, Label::Even);
        self.labelled.push(blossom);
        for vertex in risen {
            self.scan(vertex);
        }
    }

    /// Top-level nodes from `u` up to the root.
    fn to_root(&self, u: u32) -> Vec<u32> {
        let mut path = vec![self.state.top[u as usize]];
        let mut node = path[0];
        while let Some((above, _)) = self.state.nodes[node as usize].entered {
            node = self.state.top[above as usize];
            path.push(node);
        }
        path
    }

    /// Takes an odd blossom whose dual has fallen to zero apart. The way
    /// through it stays in the tree, the rest of it is free again.
    fn open(&mut self, blossom: u32) {
        let Some((above, own)) = self.state.nodes[blossom as usize].entered else { return };
        let way_in = self.state.child_with(blossom, own);
        self.state.relabel(blossom, Label::Free);
        let (mut children, mut joints) = self.state.expand(blossom);
        let mut at = children.iter().position(|&c| c == way_in).unwrap_or(0);
        if at % 2 == 1 {
            // Walk the other way round, so that a mate comes next.
            children[1..].reverse();
            joints.reverse();
            for joint in &mut joints {
                *joint = (joint.1, joint.0);
            }
            at = children.len() - at;
        }
        // children[at] … children[0], mates at (at, at − 1), (at − 2, at − 3), …
        self.enter_odd(children[at], (above, own));
        let mut even = Vec::new();
        for k in (1..=at).rev() {
            let (p, q) = joints[k - 1];
            if (at - k) % 2 == 0 {
                even.push((children[k - 1], (q, p)));
            } else {
                self.enter_odd(children[k - 1], (q, p));
            }
        }
        for (node, by) in even {
            self.enter_even(node, Some(by));
        }
        for &child in &children[at + 1..] {
            for k in 0..self.state.nodes[child as usize].vertices.len() {
                self.offer_to(self.state.nodes[child as usize].vertices[k]);
            }
        }
    }

    /// Offers the edges from even nodes to a vertex that is free again.
    fn offer_to(&mut self, v: u32) {
        let near = self.near;
        for &u in &near[v as usize] {
            if self.state.label_of(u) == Label::Even {
                self.offer(u, v);
            }
        }
    }

    /// Swaps matched and unmatched edges from the unmatched `v` over `u` to
    /// the root.
    fn flip(&mut self, u: u32, v: u32) {
        let (mut inner, mut outer) = (u, v);
        loop {
            let even = self.state.top[inner as usize];
            let above = self.state.nodes[even as usize].entered;
            self.state.set_base(even, inner);
            self.state.pair(inner, outer);
            let Some((p, _)) = above else { return };
            let odd = self.state.top[p as usize];
            let Some((q, r)) = self.state.nodes[odd as usize].entered else { return };
            self.state.set_base(odd, r);
            (inner, outer) = (q, r);
        }
    }
}
