use proptest::prelude::*;

use super::super::inheritance::Change;
use super::super::settings::Mask;
use super::super::thread::Class;
use super::*;

const KEY: ThreadKey = ThreadKey { process: 10, thread: 12, born: 99 };

fn saved() -> Saved {
    Saved { mask: Mask::All, nice: -3, class: Class::Batch, reset_on_fork: true }
}

fn pinned(cpus: &str) -> AppliedSettings {
    AppliedSettings { mask: Some(cpus.parse().unwrap()), nice: Some(-13), class: Some(Class::Idle) }
}

fn begin() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal =
        Journal::begin(StateDir::create(&dir.path().join("state")).unwrap(), 100).unwrap();
    (dir, journal)
}

fn text_of(journal: &Journal) -> Vec<u8> {
    std::fs::read(journal.dir.path_of(&journal.name)).unwrap()
}

fn read_back(text: &[u8]) -> Result<(Header, JournalState), JournalError> {
    parse(Path::new("journal"), text)
}

#[test]
fn a_journal_reads_back() {
    let (_dir, mut journal) = begin();
    journal.note(&[Line::Saved(KEY, saved()), Line::Set(KEY, pinned("0-2"), 120)]).unwrap();
    journal.note(&[Line::Set(KEY, AppliedSettings::default(), 120)]).unwrap();
    let (header, state) = read_back(&text_of(&journal)).unwrap();
    assert!(header.is_of_this_boot() && header.has_our_numbers());
    assert_eq!(header, journal.header);
    let record = &state.records[&KEY];
    assert_eq!(record.saved, saved());
    assert_eq!(record.now, [pinned("0-2"), AppliedSettings::default()]);
}

#[test]
fn a_journal_of_another_version_is_refused() {
    let (_dir, journal) = begin();
    let text = String::from_utf8(text_of(&journal)).unwrap();
    for other in [VERSION - 1, VERSION + 1] {
        let was = format!("\"version\":{VERSION}");
        let text = text.replace(&was, &format!("\"version\":{other}"));
        let refused = read_back(text.as_bytes());
        assert!(matches!(refused, Err(JournalError::OtherVersion { found, .. }) if found == other));
    }
}

#[test]
fn a_journal_that_is_written_anew_says_the_same_and_stays_locked() {
    let (_dir, mut journal) = begin();
    journal.note(&[Line::Saved(KEY, saved()), Line::Set(KEY, pinned("0"), 120)]).unwrap();
    journal.rewrite(&[Line::Saved(KEY, saved()), Line::Set(KEY, pinned("1"), 120)]).unwrap();
    journal.note(&[Line::Set(KEY, pinned("2"), 120)]).unwrap();
    let (_, state) = read_back(&text_of(&journal)).unwrap();
    let ever = state.records[&KEY].ever.iter().map(|change| change.applied.clone());
    assert!(ever.eq([pinned("1"), pinned("2")]));
    let found = find_all(&journal.dir).unwrap();
    assert!(
        matches!(found.as_slice(), [Ok(Found::Held(_, Some(manager)))] if manager.process == std::process::id())
    );
}

#[test]
fn a_long_journal_is_written_anew_only_after_it_has_doubled() {
    let (_folder, mut journal) = begin();
    // A thread needs a line for each of its last changes.
    let needed: Vec<Line> = (0..20_000).map(|_| Line::Set(KEY, pinned("1"), 120)).collect();
    journal.rewrite(&needed).unwrap();
    let mut notes = 0;
    while !journal.is_bloated() {
        journal.note(&[Line::Set(KEY, pinned("2"), 120)]).unwrap();
        notes += 1;
    }
    assert!((20_000..=22_000).contains(&notes), "{notes}");
}

#[test]
fn a_note_that_cannot_be_written_whole_leaves_no_part() {
    let (_dir, mut journal) = begin();
    journal.note(&[Line::Saved(KEY, saved())]).unwrap();
    let before = text_of(&journal);
    journal.file = File::options().write(true).open("/dev/full").unwrap();
    assert!(journal.note(&[Line::Set(KEY, pinned("0"), 120)]).is_err());
    assert_eq!(text_of(&journal), before);
}

#[test]
fn a_removed_journal_begins_anew_with_the_next_note() {
    let (_dir, mut journal) = begin();
    journal.remove().unwrap();
    journal.remove().unwrap();
    assert!(find_all(&journal.dir).unwrap().is_empty());
    journal.note(&[Line::Saved(KEY, saved())]).unwrap();
    assert!(read_back(&text_of(&journal)).unwrap().1.knows(&KEY));
}

#[test]
fn a_change_of_an_unknown_thread_is_damage() {
    let (_dir, mut journal) = begin();
    journal.note(&[Line::Set(KEY, pinned("0"), 120), Line::Saved(KEY, saved())]).unwrap();
    let error = read_back(&text_of(&journal)).unwrap_err().to_string();
    assert!(error.contains("line 2 is damaged (thread 12 of process 10 was not saved"), "{error}");
}

#[test]
fn a_journal_of_any_length_is_read_whole() {
    let (_dir, mut journal) = begin();
    journal.note(&[Line::Saved(KEY, saved())]).unwrap();
    let set = |cpus| serde_json::to_string(&Line::Set(KEY, pinned(cpus), 120)).unwrap();
    // Long, and quickly read.
    let blanks = " ".repeat(1 << 19);
    let mut text = text_of(&journal);
    while text.len() < 65 << 20 {
        text.extend(format!("{blanks}{}\n", set("0")).into_bytes());
    }
    text.extend(format!("{}\n", set("1")).into_bytes());
    std::fs::write(journal.dir.path_of(&journal.name), &text).unwrap();
    let (dir, name) = (journal.dir, journal.name);
    drop(journal.file);
    let found = find(&dir, name).unwrap();
    let Some(Found::Left(left)) = found else { panic!("its lock is free") };
    let (_, state) = left.read().unwrap();
    assert_eq!(state.records[&KEY].now, [pinned("0"), pinned("1")]);
}

#[test]
fn a_line_without_end_is_damage_and_is_not_read_to_its_end() {
    let (_dir, journal) = begin();
    let text = io::Cursor::new(text_of(&journal)).chain(io::repeat(b' '));
    let error = parse(Path::new("journal"), BufReader::new(text)).unwrap_err().to_string();
    assert!(error.contains("line 2 is damaged (it is longer"), "{error}");
}

#[test]
fn a_manager_that_starts_keeps_its_draft_while_others_restore() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    let open = || StateDir::create(&path).unwrap();
    let starting = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let dir = open();
            while starting.load(std::sync::atomic::Ordering::Relaxed) {
                remove_drafts(&dir).unwrap();
            }
        });
        let begun: Vec<_> = (0..300).map(|_| Journal::begin(open(), 100)).collect();
        starting.store(false, std::sync::atomic::Ordering::Relaxed);
        let failed: Vec<_> = begun.iter().filter_map(|begun| begun.as_ref().err()).collect();
        assert!(failed.is_empty(), "{} of 300: {:?}", failed.len(), failed.first());
    });
}

#[test]
fn a_removed_directory_is_made_again_with_all_that_the_journal_said() {
    let (_dir, mut journal) = begin();
    let lines = [Line::Saved(KEY, saved()), Line::Set(KEY, pinned("0"), 120)];
    journal.note(&lines).unwrap();
    let file = journal.dir.path_of(&journal.name);
    for removed in [journal.dir.path().to_owned(), file] {
        assert!(journal.is_in_place());
        match removed.is_dir() {
            true => std::fs::remove_dir_all(&removed).unwrap(),
            false => std::fs::remove_file(&removed).unwrap(),
        }
        assert!(!journal.is_in_place(), "{}", removed.display());
        journal.begin_again(&lines).unwrap();
        let (_, state) = read_back(&text_of(&journal)).unwrap();
        let change = Change { since: 120, applied: pinned("0"), saved: saved(), inherited: false };
        assert_eq!(state.records[&KEY].ever, [change]);
    }
}

fn any_line() -> impl Strategy<Value = String> {
    let header = serde_json::to_string(&Header::begin(100)).unwrap();
    prop_oneof![
        Just(header),
        Just(serde_json::to_string(&Line::Saved(KEY, saved())).unwrap()),
        Just(serde_json::to_string(&Line::Set(KEY, pinned("0"), 120)).unwrap()),
        ".{0,60}",
    ]
}

proptest! {
    #[test]
    fn any_journal_is_read_or_refused(
        lines in prop::collection::vec(any_line(), 0..6),
        cut in 0usize..400,
        flip in any::<u8>(),
    ) {
        let mut text = lines.join("\n").into_bytes();
        let _ = read_back(&text);
        if let Some(byte) = text.get_mut(cut) {
            *byte ^= flip;
        }
        let _ = read_back(&text);
        text.truncate(cut);
        let _ = read_back(&text);
    }

    #[test]
    fn a_journal_that_was_cut_short_says_what_was_written_before(cut in 0usize..100) {
        let (_dir, mut journal) = begin();
        journal.note(&[Line::Saved(KEY, saved()), Line::Set(KEY, pinned("0"), 120)]).unwrap();
        let whole = text_of(&journal);
        journal.note(&[Line::Set(KEY, pinned("1"), 120)]).unwrap();
        let text = text_of(&journal);
        let end = (whole.len() + cut).min(text.len() - 1);
        let (_, state) = read_back(&text[..end]).unwrap();
        prop_assert_eq!(&state.records[&KEY].ever[0].applied, &pinned("0"));
    }
}
