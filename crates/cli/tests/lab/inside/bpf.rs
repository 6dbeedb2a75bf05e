//! Requests to bpf(2) that load a `sched_ext` scheduler without a single BPF program.
//!
//! The kernel asks of a scheduler a name only; for each decision that it does not make
//! there is a default (Documentation/scheduler/sched-ext.rst). What its description looks
//! like in memory is found in the kernel's description of its own types
//! (Documentation/bpf/btf.rst).

use std::collections::BTreeMap;

/// Bytes of a type's record, and of each of its members.
const RECORD: usize = 12;
/// The kind of structures.
const STRUCT: u32 = 4;
/// A scheduler's description, with what the kernel keeps with it, and without.
const WRAPPED: &str = "bpf_struct_ops_sched_ext_ops";
const BARE: &str = "sched_ext_ops";

/// What a scheduler's description looks like.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The type's number.
    number: u32,
    /// In bytes.
    size: u32,
    /// Offset of the scheduler's name.
    name: u32,
}

/// A call of bpf(2): command, address and size of its argument.
pub type Request = (u32, u64, u32);

/// A structure of the kernel.
struct Structure {
    number: u32,
    size: u32,
    /// Offsets of its members in bytes.
    members: BTreeMap<String, u32>,
}

/// Looks the layout up in /sys/kernel/btf/vmlinux; none if the kernel knows no schedulers.
pub fn layout(types: &[u8]) -> Option<Layout> {
    let (wrapped, bare) = (structure(types, WRAPPED)?, structure(types, BARE)?);
    let name = wrapped.members.get("data")? + bare.members.get("name")?;
    Some(Layout { number: wrapped.number, size: wrapped.size, name })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn structure(types: &[u8], wanted: &str) -> Option<Structure> {
    let head = word(types, 4)? as usize;
    let section = |at| Some((head + word(types, at)? as usize, word(types, at + 4)? as usize));
    let ((begin, length), (texts, _)) = (section(8)?, section(16)?);
    let text = |offset: u32| {
        let rest = types.get(texts + offset as usize..)?;
        std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
    };
    let mut at = begin;
    let mut number = 0;
    while at < begin + length {
        number += 1;
        let (name, info, size) = (word(types, at)?, word(types, at + 4)?, word(types, at + 8)?);
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        at += RECORD;
        if kind == STRUCT && text(name)? == wanted {
            let by_bits = info >> 31 == 1;
            let member = |nth: usize| {
                let at = at + nth * RECORD;
                let offset = word(types, at + 8)?;
                let bits = if by_bits { offset & 0xff_ffff } else { offset };
                Some((text(word(types, at)?)?.to_owned(), bits / 8))
            };
            let members = (0..count).map(member).collect::<Option<_>>()?;
            return Some(Structure { number, size, members });
        }
        at += match kind {
            // Numbers; variables and tags of declarations.
            1 | 14 | 17 => 4,
            // Arrays.
            3 => RECORD,
            // Structures, unions, sections of data, long enumerations.
            4 | 5 | 15 | 19 => count * RECORD,
            // Enumerations, prototypes.
            6 | 13 => count * 8,
            _ => 0,
        };
    }
    None
}

/// Requests in their order, each a command of bpf(2) with its argument. They count on the
/// first new descriptor being number 3, and on the data being loaded at `address`.
pub fn requests(layout: Layout, name: &str, address: u64) -> (Vec<u8>, [Request; 4]) {
    let mut data = Data { bytes: Vec::new(), address };
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    // The least description of types: one number.
    let int = words(&[1, 1 << 24, 4, 1 << 24 | 32]);
    let head = words(&[0x0001_eb9f, 24, 0, 16, 16, 5]);
    let own = data.add(&[head, int, b"\0int\0".to_vec()].concat());
    let key = data.add(&words(&[0]));
    let mut value = vec![0; layout.size as usize];
    value[layout.name as usize..][..name.len()].copy_from_slice(name.as_bytes());
    let value = data.add(&value);
    let long = |words: [u64; 2]| words.map(u64::to_le_bytes).concat();
    // BPF_BTF_LOAD: descriptor 3. Where the kernel would write to is left out.
    let load = data.add(&[long([own, 0]), words(&[45, 0, 0])].concat());
    // BPF_MAP_CREATE: a BPF_MAP_TYPE_STRUCT_OPS with BPF_F_LINK, descriptor 4.
    let map = [26, 4, layout.size, 1, 1 << 13, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, layout.number];
    let map = data.add(&words(&map));
    // BPF_MAP_UPDATE_ELEM.
    let update = data.add(&[words(&[4, 0]), long([key, value]), words(&[0, 0])].concat());
    // BPF_LINK_CREATE, BPF_STRUCT_OPS: loaded until the descriptor is closed.
    let link = data.add(&words(&[4, 0, 44, 0]));
    (data.bytes, [(18, load, 28), (0, map, 64), (2, update, 32), (28, link, 16)])
}

/// Bytes at an address.
struct Data {
    bytes: Vec<u8>,
    address: u64,
}

impl Data {
    /// Adds some; gives where they are.
    fn add(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }
}
