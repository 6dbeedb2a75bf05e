//! The tree against a model of the world.

use proptest::prelude::*;

use super::*;

const PROGRAM: ProgramId = ProgramId(3);
const ROOT: u32 = 100;

/// Remembers what it was told.
#[derive(Default)]
struct Told {
    alive: BTreeSet<(u32, u32)>,
    births: Vec<Birth>,
    execs: Vec<Exec>,
    wrong: Vec<String>,
}

impl BirthHook for Told {
    fn born(&mut self, birth: &Birth) {
        if !self.alive.insert((birth.process, birth.thread)) {
            self.wrong.push(format!("born twice: {birth:?}"));
        }
        self.births.push(*birth);
    }

    fn execed(&mut self, exec: &Exec) {
        self.alive.insert((exec.process, exec.process));
        self.execs.push(exec.clone());
    }

    fn exited(&mut self, process: u32, thread: u32) {
        if !self.alive.remove(&(process, thread)) {
            self.wrong.push(format!("ended twice: {thread} of {process}"));
        }
    }
}

fn seen(process: u32, parent: u32, session: u32) -> Seen {
    Seen { process, parent, session, born: 1000 + u64::from(process), stack: 1 }
}

fn fork(parent: u32, child: u32) -> Event {
    Event::Fork {
        parent_process: parent,
        parent_thread: parent,
        child_process: child,
        child_thread: child,
    }
}

fn clone(process: u32, thread: u32) -> Event {
    // As the kernel reports it: the parent is the parent of the process.
    Event::Fork {
        parent_process: 1,
        parent_thread: 1,
        child_process: process,
        child_thread: thread,
    }
}

fn exit(process: u32, thread: u32) -> Event {
    Event::Exit { process, thread }
}

fn enrolled(tree: &Tree) -> BTreeSet<(u32, u32)> {
    tree.live().map(|live| (live.process, live.thread)).collect()
}

/// A tree with the root enrolled, and what was told about it.
fn rooted() -> (Tree, Told) {
    let (mut tree, mut told) = (Tree::new(1), Told::default());
    let root = seen(ROOT, 50, 50);
    tree.enrol(PROGRAM, &root, &[root], &mut told);
    (tree, told)
}

fn after(events: &[Event]) -> (Tree, Told) {
    let (mut tree, mut told) = rooted();
    for event in events {
        tree.apply(*event, &mut told);
    }
    assert_eq!(told.wrong, Vec::<String>::new());
    assert_eq!(told.alive, enrolled(&tree));
    (tree, told)
}

#[test]
fn children_and_threads_are_enrolled_and_others_are_not() {
    let (tree, told) = after(&[
        fork(ROOT, 101),
        clone(101, 102),
        fork(101, 103),
        fork(7, 104),
        clone(104, 105),
        exit(101, 101),
    ]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (101, 102), (103, 103)]));
    let births: Vec<_> =
        told.births.iter().map(|b| (b.thread, b.parent_process, b.parent_thread)).collect();
    assert_eq!(
        births,
        [(ROOT, 50, None), (101, ROOT, Some(ROOT)), (102, 101, None), (103, 101, Some(101))]
    );
}

#[test]
fn exec_by_the_only_thread_left_names_it() {
    let (tree, told) = after(&[clone(ROOT, 101), exit(ROOT, ROOT), Event::Exec { process: ROOT }]);
    assert_eq!(told.execs[0].candidates, [101]);
    assert_eq!(told.execs[0].generation, 1);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn exec_beside_living_threads_names_all_candidates() {
    let (tree, told) = after(&[
        clone(ROOT, 101),
        clone(ROOT, 102),
        Event::Exec { process: ROOT },
        exit(ROOT, 102),
    ]);
    assert_eq!(told.execs[0].candidates, [ROOT, 101, 102]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn a_number_used_again_before_its_end_is_reported_stays() {
    let (tree, _) = after(&[
        fork(ROOT, 101),
        fork(ROOT, 101),
        exit(101, 101),
        clone(ROOT, 102),
        clone(ROOT, 102),
        exit(ROOT, 102),
    ]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (101, 101), (ROOT, 102)]));
}

#[test]
fn a_number_that_passed_to_others_is_enrolled_no_more() {
    let (tree, _) = after(&[fork(ROOT, 101), clone(101, 102), fork(7, 101)]);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT)]));
}

#[test]
fn a_thread_found_by_a_scan_first_is_born_once() {
    let (mut tree, mut told) = rooted();
    tree.set_threads(ROOT, &[ROOT, 101], &mut told);
    let before: Vec<_> = tree.live().map(|live| live.serial).collect();
    tree.apply(clone(ROOT, 101), &mut told);
    assert_eq!(tree.live().map(|live| live.serial).collect::<Vec<_>>(), before);
    assert_eq!(told.births.len(), 2);
}

#[test]
fn orphans_are_found_by_a_session_made_since() {
    let (mut tree, mut told) = rooted();
    tree.adopt(&[seen(101, ROOT, 50)], &mut told);
    tree.note(101, 1101, 1, 101, &mut told);
    let (orphan, stranger) = (seen(102, 1, 101), seen(103, 1, 50));
    tree.adopt(&[orphan, stranger], &mut told);
    assert_eq!(tree.program(102), Some(PROGRAM));
    assert_eq!(tree.program(103), None);
    // Its child's orphans too, when both are gone.
    tree.retain_listed(&BTreeSet::from([ROOT, 102]), &mut told);
    tree.adopt(&[seen(104, 1, 101)], &mut told);
    assert_eq!(tree.program(104), Some(PROGRAM));
}

#[test]
fn a_session_made_before_enrolment_brings_nobody() {
    let (mut tree, mut told) = (Tree::new(1), Told::default());
    let (root, child) = (seen(ROOT, 50, ROOT), seen(101, ROOT, 101));
    tree.enrol(PROGRAM, &root, &[root, child], &mut told);
    tree.note(ROOT, root.born, 1, ROOT, &mut told);
    tree.note(101, child.born, 1, 101, &mut told);
    tree.adopt(&[seen(102, 1, ROOT), seen(103, 1, 101)], &mut told);
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, ROOT), (101, 101)]));
}

#[test]
fn the_watcher_itself_is_not_adopted() {
    let (mut tree, mut told) = (Tree::new(101), Told::default());
    let root = seen(ROOT, 50, 50);
    tree.enrol(PROGRAM, &root, &[root, seen(101, ROOT, 50)], &mut told);
    assert_eq!(tree.program(101), None);
}

#[test]
fn another_stack_shows_an_exec() {
    let (mut tree, mut told) = rooted();
    tree.note(ROOT, 1100, 1, 50, &mut told);
    assert!(told.execs.is_empty());
    tree.note(ROOT, 1100, 2, 50, &mut told);
    tree.note(ROOT, 1100, 2, 50, &mut told);
    assert_eq!(told.execs.len(), 1);
    // An exec that was reported is not found again.
    tree.apply(Event::Exec { process: ROOT }, &mut told);
    tree.note(ROOT, 1100, 3, 50, &mut told);
    assert_eq!(told.execs.len(), 2);
}

#[test]
fn ages_count_reads() {
    let (mut tree, mut told) = rooted();
    tree.next_epoch();
    tree.apply(fork(ROOT, 101), &mut told);
    tree.next_epoch();
    tree.next_epoch();
    let ages: Vec<_> = tree.live().map(|live| live.ages).collect();
    let root = Ages { seen: 3, forked: Some(2), ..Ages::default() };
    assert_eq!(ages, [root, Ages { seen: 2, ..Ages::default() }]);
    assert_eq!(ages[0].least(), 2);
}

/// One step of the world; the numbers choose among what is there.
#[derive(Debug, Clone, Copy)]
enum Step {
    Fork(usize),
    Clone(usize),
    Exit(usize),
    Exec(usize),
    Stranger(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<usize>().prop_map(Step::Fork),
        any::<usize>().prop_map(Step::Clone),
        any::<usize>().prop_map(Step::Exit),
        any::<usize>().prop_map(Step::Exec),
        any::<usize>().prop_map(Step::Stranger),
    ]
}

/// All threads of the world: (process, thread), with what they belong to.
#[derive(Default)]
struct World {
    threads: BTreeMap<(u32, u32), bool>,
    parents: BTreeMap<u32, u32>,
    stacks: BTreeMap<u32, u64>,
    next: u32,
    /// Processes with living children stay, so that scans can follow them.
    keep_parents: bool,
}

impl World {
    fn new(keep_parents: bool) -> Self {
        Self {
            threads: BTreeMap::from([((ROOT, ROOT), true), ((50, 50), false)]),
            parents: BTreeMap::from([(ROOT, 50), (50, 1)]),
            stacks: BTreeMap::new(),
            next: ROOT,
            keep_parents,
        }
    }

    /// Takes a step; gives the kernel's report of it.
    fn take(&mut self, step: Step) -> Option<Event> {
        let (Step::Fork(n) | Step::Clone(n) | Step::Exit(n) | Step::Exec(n) | Step::Stranger(n)) =
            step;
        let all: Vec<_> = self.threads.iter().map(|(thread, ours)| (*thread, *ours)).collect();
        let ((process, thread), ours) = *all.get(n % all.len().max(1))?;
        self.next += 1;
        let new = self.next;
        match step {
            Step::Fork(_) => {
                self.threads.insert((new, new), ours);
                self.parents.insert(new, process);
                Some(Event::Fork {
                    parent_process: process,
                    parent_thread: thread,
                    child_process: new,
                    child_thread: new,
                })
            }
            Step::Clone(_) => {
                self.threads.insert((process, new), ours);
                Some(clone(process, new))
            }
            Step::Exit(_) => {
                let last = all.iter().filter(|((other, _), _)| *other == process).count() == 1;
                let parent = self.parents.values().any(|parent| *parent == process);
                if process == ROOT && last || (last && parent && self.keep_parents) {
                    return None;
                }
                self.threads.remove(&(process, thread));
                if last {
                    self.parents.remove(&process);
                }
                Some(exit(process, thread))
            }
            Step::Exec(_) => {
                self.threads.retain(|(other, _), _| *other != process);
                self.threads.insert((process, process), ours);
                self.stacks.insert(process, u64::from(new));
                Some(Event::Exec { process })
            }
            Step::Stranger(_) => {
                self.threads.insert((new, new), false);
                self.parents.insert(new, 1);
                Some(fork(7, new))
            }
        }
    }

    fn ours(&self) -> BTreeSet<(u32, u32)> {
        self.threads.iter().filter(|(_, ours)| **ours).map(|(thread, _)| *thread).collect()
    }

    fn scan(&self) -> Vec<Seen> {
        let stack = |process: &u32| self.stacks.get(process).copied().unwrap_or(1);
        let with_stack = |(process, parent): (&u32, &u32)| Seen {
            stack: stack(process),
            ..seen(*process, *parent, 50)
        };
        self.parents.iter().map(with_stack).collect()
    }

    fn threads_of(&self, process: u32) -> Vec<u32> {
        self.threads.keys().filter(|(other, _)| *other == process).map(|key| key.1).collect()
    }
}

fn rescan(tree: &mut Tree, world: &World, told: &mut Told) {
    let seen = world.scan();
    tree.retain_seen(&seen, told);
    for seen in &seen {
        tree.note(seen.process, seen.born, seen.stack, seen.session, told);
    }
    tree.adopt(&seen, told);
    for process in tree.processes().collect::<Vec<_>>() {
        tree.set_threads(process, &world.threads_of(process), told);
    }
}

proptest! {
    #[test]
    fn events_alone_follow_the_world(steps in proptest::collection::vec(step(), 0..120)) {
        let ((mut tree, mut told), mut world) = (rooted(), World::new(false));
        for step in steps {
            if let Some(event) = world.take(step) {
                tree.apply(event, &mut told);
            }
            prop_assert_eq!(enrolled(&tree), world.ours());
        }
        prop_assert_eq!(told.wrong, Vec::<String>::new());
    }

    #[test]
    fn a_scan_repairs_losses(
        steps in proptest::collection::vec((step(), any::<bool>()), 0..120),
        late in proptest::collection::vec(step(), 0..20),
    ) {
        let ((mut tree, mut told), mut world) = (rooted(), World::new(true));
        for (step, lost) in steps {
            if let Some(event) = world.take(step) {
                tree.apply(if lost { Event::Loss } else { event }, &mut told);
            }
        }
        // These reports wait in the socket while the scan sees their effect.
        let waiting: Vec<_> = late.into_iter().filter_map(|step| world.take(step)).collect();
        rescan(&mut tree, &world, &mut told);
        prop_assert_eq!(enrolled(&tree), world.ours());
        tree.catch_up();
        for event in waiting {
            tree.apply(event, &mut told);
        }
        tree.caught_up();
        prop_assert_eq!(enrolled(&tree), world.ours());
        prop_assert_eq!(&told.alive, &enrolled(&tree));
        prop_assert_eq!(told.wrong, Vec::<String>::new());
    }
}

#[test]
fn a_stack_that_is_not_shown_is_no_exec() {
    let (mut tree, mut told) = after(&[clone(ROOT, 101), exit(ROOT, ROOT)]);
    for stack in [0, 1, 0] {
        tree.note(ROOT, 1100, stack, 50, &mut told);
    }
    assert!(told.execs.is_empty());
    assert_eq!(enrolled(&tree), BTreeSet::from([(ROOT, 101)]));
    tree.note(ROOT, 1100, 2, 50, &mut told);
    assert_eq!(told.execs.len(), 1);
}
