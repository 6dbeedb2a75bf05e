//! Which earlier store wrote what a load reads.
//!
//! # Problem
//! A value that is stored and soon loaded again passes through the store queue, and whatever depends on it waits:
//! loop variables that compilers keep in memory, spilled registers, arguments on the stack. However long the
//! queue, it does not hide such a chain.
//!
//! # Approach
//! A load's source is the youngest of the last [`KEPT`] stores that wrote any of its bytes. Also kept is whether
//! that store wrote all of them, since cores forward only then; and whether both form their address in the same
//! way, since some cores rename such loads.
//!
//! # Properties
//! `the_youngest_store_of_any_byte_counts`, `an_operand_of_unknown_size_depends_on_nothing`,
//! `stores_are_found_as_by_a_list_of_all_bytes`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::OpClass;

/// Stores that are remembered: as many as the largest store queues hold.
pub const KEPT: usize = 128;

/// How an instruction names an operand in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Operand {
    /// Its size in bytes; 0: not known, so that nothing is known to depend on it.
    pub bytes: u16,
    /// How its address is formed: equal for two that form it from the same registers, scale and displacement, and
    /// for all that use the stack pointer alone, since cores know by how much it moved. 0: like no other.
    pub form: u32,
}

/// The store that wrote what a load reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromStore {
    /// How many micro-operations back it is: 1 is the one before.
    pub back: u16,
    /// Did it write all bytes that are read?
    pub whole: bool,
    /// Is its address made in the same way ([`Operand::form`])?
    pub same_form: bool,
}

#[derive(Debug, Clone, Copy)]
struct Store {
    number: u64,
    first: u64,
    operand: Operand,
}

/// The last stores of a thread.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    /// The youngest last.
    last: VecDeque<Store>,
    ops: u64,
}

impl Stores {
    /// Takes the next micro-operation, with the address and operand of its access if it makes one. For a load,
    /// gives the store that wrote what it reads, if that one is remembered.
    #[inline]
    pub fn next(&mut self, class: OpClass, access: Option<(u64, Operand)>) -> Option<FromStore> {
        self.ops += 1;
        let (first, operand) = access.filter(|(_, operand)| operand.bytes > 0)?;
        match class {
            OpClass::Load => self.source(first, operand),
            OpClass::Store => {
                if self.last.len() == KEPT {
                    self.last.pop_front();
                }
                self.last.push_back(Store { number: self.ops, first, operand });
                None
            }
            _ => None,
        }
    }

    fn source(&self, first: u64, operand: Operand) -> Option<FromStore> {
        let bytes = |operand: Operand| u64::from(operand.bytes);
        let overlaps = |store: &&Store| {
            first.wrapping_sub(store.first) < bytes(store.operand)
                || store.first.wrapping_sub(first) < bytes(operand)
        };
        let store = self.last.iter().rev().find(overlaps)?;
        let offset = first.wrapping_sub(store.first);
        Some(FromStore {
            back: u16::try_from(self.ops - store.number).ok()?,
            whole: offset.saturating_add(bytes(operand)) <= bytes(store.operand),
            same_form: offset == 0 && operand.form != 0 && operand.form == store.operand.form,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn operand(bytes: u16, form: u32) -> Operand {
        Operand { bytes, form }
    }

    #[test]
    fn the_youngest_store_of_any_byte_counts() {
        let mut stores = Stores::default();
        stores.next(OpClass::Store, Some((0x100, operand(8, 3))));
        stores.next(OpClass::Integer, None);
        let load = |stores: &mut Stores, first, bytes, form| {
            stores.next(OpClass::Load, Some((first, operand(bytes, form))))
        };
        let from = |back, whole, same_form| Some(FromStore { back, whole, same_form });
        assert_eq!(load(&mut stores, 0x100, 8, 3), from(2, true, true));
        assert_eq!(load(&mut stores, 0x104, 4, 3), from(3, true, false));
        assert_eq!(load(&mut stores, 0xfc, 8, 3), from(4, false, false));
        assert_eq!(load(&mut stores, 0x108, 8, 3), None);
        stores.next(OpClass::Store, Some((0x107, operand(1, 0))));
        assert_eq!(load(&mut stores, 0x100, 8, 3), from(1, false, false));
        assert_eq!(load(&mut stores, 0x100, 4, 4), from(8, true, false));
        assert_eq!(load(&mut stores, 0x107, 1, 0), from(3, true, false));
    }

    #[test]
    fn an_operand_of_unknown_size_depends_on_nothing() {
        let mut stores = Stores::default();
        stores.next(OpClass::Store, Some((0x100, operand(8, 3))));
        assert_eq!(stores.next(OpClass::Load, Some((0x100, operand(0, 3)))), None);
        stores.next(OpClass::Store, Some((0x200, operand(0, 3))));
        assert_eq!(stores.next(OpClass::Load, Some((0x200, operand(8, 3)))), None);
    }

    proptest! {
        #[test]
        fn stores_are_found_as_by_a_list_of_all_bytes(
            ops in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u16..9), 1..300),
        ) {
            let mut stores = Stores::default();
            let mut wrote: Vec<Vec<u64>> = Vec::new();
            for (is_store, first, bytes) in ops {
                let class = if is_store { OpClass::Store } else { OpClass::Load };
                let found = stores.next(class, Some((first, operand(bytes, 1))));
                let touched: Vec<u64> = (first..first + u64::from(bytes)).collect();
                let now = wrote.len();
                let kept: Vec<usize> = (0..now).rev().filter(|at| !wrote[*at].is_empty()).take(KEPT).collect();
                let source = kept.into_iter().find(|at| touched.iter().any(|byte| wrote[*at].contains(byte)));
                if let (Some(at), false) = (source, is_store) {
                    let found = found.unwrap();
                    prop_assert_eq!(usize::from(found.back), now - at);
                    prop_assert_eq!(found.whole, touched.iter().all(|byte| wrote[at].contains(byte)));
                    prop_assert_eq!(found.same_form, wrote[at].first() == touched.first());
                } else {
                    prop_assert_eq!(found, None);
                }
                wrote.push(if is_store { touched } else { Vec::new() });
            }
        }
    }
}
