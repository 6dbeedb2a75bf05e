//! From decoded instructions to the micro-operations that were executed.

use super::{REGISTERS, StaticOp};
use crate::{OpClass, Operand};

/// Which micro-operation wrote each register last.
#[derive(Debug, Clone)]
pub struct Dependences {
    /// Counted from 1; 0 is none.
    writers: [u64; REGISTERS],
    ops: u64,
}

impl Default for Dependences {
    fn default() -> Self {
        Self { writers: [0; REGISTERS], ops: 0 }
    }
}

impl Dependences {
    /// Takes the next micro-operation: gives how many operations back its sources were made, as in
    /// [`super::TraceOp::sources`].
    #[inline]
    pub fn sources(&mut self, reads: &[u8], writes: &[u8]) -> [u16; 2] {
        self.ops += 1;
        let at = self.ops;
        let (mut near, mut far) = (0, 0);
        for register in reads {
            let writer = self.writers.get(usize::from(*register)).copied().unwrap_or(0);
            if writer > near {
                (near, far) = (writer, near);
            } else if writer > far && writer != near {
                far = writer;
            }
        }
        for register in writes {
            if let Some(writer) = self.writers.get_mut(usize::from(*register)) {
                *writer = at;
            }
        }
        [near, far].map(|writer| match writer {
            0 => 0,
            writer => u16::try_from(at - writer).unwrap_or(0),
        })
    }
}

/// Makes the micro-operations of one execution of an instruction. `accesses`
/// are what it read and wrote, in order; `push` gets the class, the registers read
/// and written, and the access of each operation with its operand.
///
/// A load or store that did not access (such as a masked one) needs no port to memory: it becomes an integer
/// operation. Accesses beyond the decoded ones (gathers, repeated string instructions, saved states) follow as
/// operations that read what the first of their class reads; their operands are not known. `again`: only those,
/// because it is one more round of a repeated string instruction.
#[inline]
pub fn unroll<A: Copy>(
    ops: &[StaticOp],
    again: bool,
    accesses: &(impl Iterator<Item = (OpClass, A)> + Clone),
    mut push: impl FnMut(OpClass, &[u8], &[u8], Option<(A, Operand)>),
) {
    let of = |class| accesses.clone().filter(move |access: &(OpClass, A)| access.0 == class);
    let (mut loads, mut stores) = (of(OpClass::Load), of(OpClass::Store));
    for op in ops.iter().filter(|_| !again) {
        let access = match op.class {
            OpClass::Load => loads.next(),
            OpClass::Store => stores.next(),
            class => {
                push(class, &op.reads, &op.writes, None);
                continue;
            }
        };
        let class = access.map_or(OpClass::Integer, |(class, _)| class);
        push(class, &op.reads, &op.writes, access.map(|(_, access)| (access, op.operand)));
    }
    for (class, access) in loads.chain(stores) {
        let like = ops.iter().find(|op| op.class == class);
        push(class, like.map_or(&[], |op| &op.reads), &[], Some((access, Operand::default())));
    }
}
