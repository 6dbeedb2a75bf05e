//! Vertices, nested blossoms, their duals and the matching.

use crate::dual::{Dual, OddSet};

/// No vertex, no node.
pub(crate) const NONE: u32 = u32::MAX;

/// An edge from a vertex to a vertex.
pub(crate) type Link = (u32, u32);

/// Where a top-level node stands in the tree that is being grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    /// Not in the tree (or inside a blossom).
    Free,
    /// At even distance from the root: its duals rise.
    Even,
    /// At odd distance: its duals fall.
    Odd,
}

/// A vertex, or a blossom of an odd number of nodes.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The blossom it lies in, or `NONE`.
    pub parent: u32,
    /// The vertex through which it is matched to the outside.
    pub base: u32,
    pub label: Label,
    /// The tree edge by which it was reached: (vertex of the parent node, own
    /// vertex); the root has none.
    pub entered: Option<Link>,
    /// Dual of a blossom, less what its label has added.
    pub z: i64,
    /// Nodes around the cycle; the first holds the base, then pairs of mates.
    pub children: Vec<u32>,
    /// `joints[k]` is the edge from `children[k]` to the next child.
    pub joints: Vec<Link>,
    /// All vertices in it.
    pub vertices: Vec<u32>,
}

impl Node {
    fn vertex(v: u32) -> Self {
        Self {
            parent: NONE,
            base: v,
            label: Label::Free,
            entered: None,
            z: 0,
            children: Vec::new(),
            joints: Vec::new(),
            vertices: vec![v],
        }
    }
}

/// A matching, its dual, and the blossoms that tie the two together.
///
/// Duals of nodes in the tree move together. They are kept as *stored + shift*,
/// where the shift is +`time` for even, −`time` for odd and 0 for free nodes.
#[derive(Debug)]
pub(crate) struct State {
    pub mate: Vec<u32>,
    /// Stored duals of vertices.
    pub y: Vec<i64>,
    pub nodes: Vec<Node>,
    /// Top-level node of each vertex.
    pub top: Vec<u32>,
    /// By how much duals have changed in the present search.
    pub time: i64,
    spare: Vec<u32>,
}

impl State {
    /// Nothing is matched; `y` is feasible for all edges that will be used.
    pub(crate) fn new(y: Vec<i64>) -> Self {
        let n = y.len() as u32;
        Self {
            mate: vec![NONE; y.len()],
            y,
            nodes: (0..n).map(Node::vertex).collect(),
            top: (0..n).collect(),
            time: 0,
            spare: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.mate.len()
    }

    fn shift(&self, label: Label) -> i64 {
        match label {
            Label::Free => 0,
            Label::Even => self.time,
            Label::Odd => -self.time,
        }
    }

    pub(crate) fn is_blossom(&self, node: u32) -> bool {
        node as usize >= self.len()
    }

    /// Label of the top-level node that holds `v`.
    pub(crate) fn label_of(&self, v: u32) -> Label {
        self.nodes[self.top[v as usize] as usize].label
    }

    /// The dual of `v` now.
    pub(crate) fn dual(&self, v: u32) -> i64 {
        self.y[v as usize] + self.shift(self.label_of(v))
    }

    /// Gives a top-level node another label; no dual changes by it.
    pub(crate) fn relabel(&mut self, node: u32, label: Label) {
        let change = self.shift(self.nodes[node as usize].label) - self.shift(label);
        let of = &mut self.nodes[node as usize];
        of.label = label;
        if !of.children.is_empty() {
            of.z += change;
        }
        for &v in &of.vertices {
            self.y[v as usize] += change;
        }
    }

    /// Makes a blossom of the nodes around an odd cycle, the first of which
    /// holds its base. It is not labelled yet.
    pub(crate) fn shrink(&mut self, children: Vec<u32>, joints: Vec<Link>) -> u32 {
        let mut vertices = Vec::new();
        for &child in &children {
            self.relabel(child, Label::Free);
            vertices.extend_from_slice(&self.nodes[child as usize].vertices);
        }
        let first = &self.nodes[children[0] as usize];
        let (base, entered) = (first.base, first.entered);
        let blossom = self.spare.pop().unwrap_or(self.nodes.len() as u32);
        for &child in &children {
            self.nodes[child as usize].parent = blossom;
        }
        for &v in &vertices {
            self.top[v as usize] = blossom;
        }
        let node = Node { base, entered, children, joints, vertices, ..Node::vertex(base) };
        match self.nodes.get_mut(blossom as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        blossom
    }

    /// Takes a free top-level blossom apart and returns its children and joints.
    pub(crate) fn expand(&mut self, blossom: u32) -> (Vec<u32>, Vec<Link>) {
        let of = &mut self.nodes[blossom as usize];
        let children = std::mem::take(&mut of.children);
        let joints = std::mem::take(&mut of.joints);
        of.vertices.clear();
        self.spare.push(blossom);
        for &child in &children {
            let node = &mut self.nodes[child as usize];
            node.parent = NONE;
            node.entered = None;
            for &v in &node.vertices {
                self.top[v as usize] = child;
            }
        }
        (children, joints)
    }

    /// The child of `node` that holds `v`.
    pub(crate) fn child_with(&self, node: u32, v: u32) -> u32 {
        let mut child = v;
        while self.nodes[child as usize].parent != node {
            child = self.nodes[child as usize].parent;
        }
        child
    }

    /// Rematches the inside of `node` so that `v` is left for the outside.
    pub(crate) fn set_base(&mut self, node: u32, v: u32) {
        if self.nodes[node as usize].base == v {
            return;
        }
        let first = self.child_with(node, v);
        let of = &mut self.nodes[node as usize];
        let mut children = std::mem::take(&mut of.children);
        let mut joints = std::mem::take(&mut of.joints);
        of.base = v;
        let at = children.iter().position(|&c| c == first).unwrap_or(0);
        children.rotate_left(at);
        joints.rotate_left(at);
        self.set_base(first, v);
        for k in (1..children.len()).step_by(2) {
            let (p, q) = joints[k];
            if self.mate[p as usize] != q || self.mate[q as usize] != p {
                self.set_base(children[k], p);
                self.set_base(children[k + 1], q);
                self.pair(p, q);
            }
        }
        let of = &mut self.nodes[node as usize];
        of.children = children;
        of.joints = joints;
    }

    /// Makes two vertices mates.
    pub(crate) fn pair(&mut self, p: u32, q: u32) {
        self.mate[p as usize] = q;
        self.mate[q as usize] = p;
    }

    /// The dual, once no node is in a tree.
    pub(crate) fn dual_solution(&self) -> Dual {
        let odd_sets = self.nodes[self.len()..]
            .iter()
            .filter(|node| !node.children.is_empty() && node.z > 0)
            .map(|node| OddSet { members: node.vertices.clone(), price: node.z })
            .collect();
        Dual { vertices: self.y.clone(), odd_sets }
    }
}
