//! What programs do is what their profiles say.

use symbiont_profile::{LONGEST_FILE, OpClass, Phase, ReuseBin, to_bytes};

use crate::or_skip;
use crate::support::{build, profile, text};

/// The kind of phase that a program spends most of its instructions in.
fn main_phase(source: &str) -> Phase {
    let built = build(source);
    profile(&[text(&built.program)]).phases.remove(0)
}

#[test]
fn a_loop_has_the_instructions_that_it_has() {
    or_skip!();
    // Per round: add, multiply, load, store, sub, jnz.
    let phase = main_phase(
        r#"int main(void) {
            static long cell[8];
            long n = 3000000, x = 1;
            __asm__ volatile(
                "1: add $1, %1; imul %1, %1; mov (%2), %%rax; mov %%rax, 8(%2); sub $1, %0; jnz 1b"
                : "+r"(n), "+r"(x) : "r"(cell) : "rax", "memory", "cc");
            return 0;
        }"#,
    );
    let rounds = phase.instructions as f64 / 6.0;
    for (class, each) in [
        (OpClass::Integer, 2.0),
        (OpClass::Multiply, 1.0),
        (OpClass::Load, 1.0),
        (OpClass::Store, 1.0),
        (OpClass::Branch, 1.0),
        (OpClass::Divide, 0.0),
    ] {
        let found = phase.mix.count(class) as f64 / rounds;
        assert!((found - each).abs() < 0.02, "{class:?}: {found} a round");
    }
    let wrong = phase.per_instruction(phase.branches.mispredicted[0]);
    assert!(wrong < 0.001, "a loop's branch is predicted, but {wrong}");
    assert!(phase.data.line_64.curve().misses(8.0) < 0.01);
    let trace = phase.traces.last().unwrap();
    assert!((1_000..=1_500).contains(&trace.instructions()), "{}", trace.instructions());
}

#[test]
fn values_that_are_kept_in_memory_are_reported() {
    or_skip!();
    // Of what is loaded each round, a store wrote all by the same address register, all by another one, a part,
    // and nothing.
    let phase = main_phase(
        r#"int main(void) {
            static long cell[16];
            long n = 3000000;
            __asm__ volatile(
                "1: mov (%1), %%rax; add $1, %%rax; mov %%rax, (%1); lea (%1), %%rdi; mov (%%rdi), %%ecx; "
                "mov 4(%1), %%rdx; mov 64(%1), %%rsi; sub $1, %0; jnz 1b"
                : "+r"(n) : "r"(cell) : "rax", "rcx", "rdx", "rsi", "rdi", "memory", "cc");
            return 0;
        }"#,
    );
    let trace = phase.traces.last().unwrap();
    let loads = trace.ops.iter().filter(|op| op.class == OpClass::Load);
    let how: Vec<_> = loads.map(|op| op.stored.map(|from| (from.whole, from.same_form))).collect();
    let round = [Some((true, true)), Some((true, false)), Some((false, false)), None];
    let (full, begun) = (how.windows(4).filter(|four| **four == round).count(), how.len() / 4);
    assert!(begun > 100 && full >= begun - 1, "{full} of {begun} rounds");
}

#[test]
fn a_cyclic_sweep_has_the_reuse_time_of_its_length() {
    or_skip!();
    // 4,096 lines, one load each, over and over.
    let phase = main_phase(
        r#"static volatile char lines[4096 * 64];
        int main(void) {
            for (int round = 0; round < 400; round++)
                for (int line = 0; line < 4096; line++) (void)lines[line * 64];
            return 0;
        }"#,
    );
    let reuse = &phase.data.line_64;
    let bin = ReuseBin::of(4_096).index().unwrap();
    let near: u64 = reuse.counts[bin - 1..=bin + 1].iter().sum();
    assert!(near as f64 > 0.97 * reuse.sampled() as f64, "{near} of {}", reuse.sampled());
    assert!(reuse.curve().misses(2_000.0) > 0.97);
    assert!(reuse.curve().misses(5_000.0) < 0.03);
    // Lines of 128 bytes are accessed twice in a row.
    assert!((phase.data.line_128.curve().misses(1_000.0) - 0.5).abs() < 0.03);
    let lines = phase.footprint.data_lines;
    assert!((4_096..4_400).contains(&lines), "{lines}");
    assert!(phase.written_share() < 0.1);
}

#[test]
fn branches_that_depend_on_noise_are_mispredicted() {
    or_skip!();
    let phase = main_phase(
        r#"int main(void) {
            unsigned long state = 1; volatile long sum = 0;
            for (long i = 0; i < 500000; i++) {
                state = state * 6364136223846793005UL + 1442695040888963407UL;
                __asm__ volatile("test %0, %0; jns 1f; addq $1, %1; 1:" : : "r"(state), "m"(sum) : "memory", "cc");
            }
            return 0;
        }"#,
    );
    let share = phase.branches.mispredicted[0] as f64 / phase.branches.conditional as f64;
    assert!((0.2..0.35).contains(&share), "half of each second branch, but {share}");
}

#[test]
fn floating_point_work_is_counted_by_value() {
    or_skip!();
    let phase = main_phase(
        r#"int main(void) {
            long n = 1000000;
            __asm__ volatile(
                "1: addpd %%xmm1, %%xmm0; mulsd %%xmm1, %%xmm2; divsd %%xmm1, %%xmm3; sub $1, %0; jnz 1b"
                : "+r"(n) : : "xmm0", "xmm1", "xmm2", "xmm3", "cc");
            return 0;
        }"#,
    );
    let rounds = phase.instructions as f64 / 5.0;
    assert!((phase.mix.flops as f64 / rounds - 4.0).abs() < 0.1, "2 + 1 + 1 a round");
    for class in [OpClass::FpAdd, OpClass::FpMultiply, OpClass::FpDivide] {
        assert!((phase.mix.count(class) as f64 / rounds - 1.0).abs() < 0.02, "{class:?}");
    }
}

#[test]
fn super_sets_show_where_in_the_cache_a_program_is_active() {
    or_skip!();
    // Lines whose number is 5 modulo 128: one super-set of a cache of 128 sets.
    let phase = main_phase(
        r#"static volatile char data[128 * 64 * 200] __attribute__((aligned(8192)));
        int main(void) {
            for (int round = 0; round < 5000; round++)
                for (int i = 0; i < 200; i++) (void)data[i * 128 * 64 + 5 * 64];
            return 0;
        }"#,
    );
    let map = &phase.super_sets[1];
    assert_eq!(map.sets, 128);
    let busiest = map.regions.iter().map(|region| region.accesses).max().unwrap();
    assert_eq!(map.regions[5 / 4].accesses, busiest);
    let total: u64 = map.regions.iter().map(|region| region.accesses).sum();
    assert!(busiest as f64 > 0.95 * total as f64);
}

#[test]
fn phases_are_distinguished_and_come_in_order() {
    or_skip!();
    let built = build(
        r#"static volatile double cells[1 << 18];
        int main(void) {
            for (int round = 0; round < 3; round++) {
                for (long i = 0; i < 2000000; i++) __asm__ volatile("imul %0, %%rax" : : "r"(i) : "rax", "cc");
                for (int j = 0; j < 8; j++)
                    for (int i = 0; i < 1 << 18; i++) cells[i] = cells[i] + 1.0;
            }
            return 0;
        }"#,
    );
    let profile = profile(&[text(&built.program)]);
    let integer = |phase: &Phase| phase.per_instruction(phase.mix.count(OpClass::Multiply)) > 0.2;
    let kinds: Vec<bool> =
        profile.sequence().iter().map(|span| integer(profile.phase(*span).unwrap())).collect();
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((5..=12).contains(&changes), "three rounds of two loops, but {kinds:?}");
    assert!(to_bytes(&profile).unwrap().len() <= LONGEST_FILE);
}

#[test]
fn a_program_of_one_thread_gives_the_same_bytes_again() {
    or_skip!();
    let built = build(
        r#"#include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        int main(void) {
            char *list[2000]; unsigned state = 1;
            for (int i = 0; i < 2000; i++) {
                list[i] = malloc(16 + i % 64);
                snprintf(list[i], 16, "%u", state = state * 1103515245 + 12345);
            }
            long sum = 0;
            for (int i = 0; i < 2000; i++)
                for (int j = 0; j < 100; j++) sum += strcmp(list[i], list[(i * 7 + j) % 2000]);
            printf("%ld\n", sum);
            return 0;
        }"#,
    );
    let bytes = || to_bytes(&profile(&[text(&built.program)])).unwrap();
    assert!(bytes() == bytes(), "two profiles of one program differ");
}

#[test]
fn clearing_a_large_table_gives_a_profile() {
    or_skip!();
    // One instruction that stores 64 MiB, as programs do with hash tables.
    let built = build(
        r#"#include <stdlib.h>
        int main(void) {
            size_t size = 64 << 20; char *table = malloc(size), *to = table;
            __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(0) : "memory");
            for (long i = 0; i < 3000000; i++) table[i * 64 % (64 << 20)] += i;
            return table[4096] == 3;
        }"#,
    );
    let profile = profile(&[text(&built.program)]);
    let longest = profile.phases.iter().flat_map(|phase| &phase.traces).map(|t| t.ops.len()).max();
    assert!(longest.unwrap() <= 6_000, "{longest:?}");
    to_bytes(&profile).unwrap();
}
