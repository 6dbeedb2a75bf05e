//! Which processes rules match, in which order, and the treatment of bad ones.

use std::fs;
use std::sync::Arc;

use symbiont_containers::Identity;

use super::*;
use crate::surroundings::Surroundings;

fn rules(files: &[(&str, &str)]) -> Rules {
    let (rules, errors) = try_rules(files);
    assert!(errors.is_empty(), "{errors:?}");
    rules
}

/// Files by directory and name.
fn try_rules(files: &[(&str, &str)]) -> (Rules, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let directories = ["lib", "etc"].map(|name| folder.path().join(name));
    let mut rules = Rules::of(directories.to_vec());
    let errors = rules.read().iter().map(ToString::to_string).collect();
    (rules, errors)
}

fn postgres() -> Facts {
    Facts {
        cgroup: "/system.slice/postgresql@15-main.service".to_owned(),
        unit: Some("postgresql@15-main.service".to_owned()),
        container: None,
        executable: Some("/usr/lib/postgresql/15/bin/postgres".to_owned()),
        command: Some("postgres: checkpointer".to_owned()),
        comm: Some("postgres".to_owned()),
        uid: 104,
        user: Some("postgres".to_owned()),
    }
}

fn class(rules: &Rules, facts: &Facts) -> Option<Class> {
    rules.decide(facts).map(|verdict| verdict.class)
}

#[test]
fn all_that_a_rule_names_must_match() {
    let facts = postgres();
    for (names, matches) in [
        ("unit = \"postgresql@*.service\"", true),
        ("unit = \"postgresql.service\"", false),
        ("cgroup = \"/system.slice/*\"", true),
        ("cgroup = \"/user.slice/*\"", false),
        ("executable = \"postgres\"", true),
        ("executable = \"/usr/lib/*/postgres\"", true),
        ("executable = \"bin\"", false),
        ("executable = \"/usr/bin/*\"", false),
        ("executable = \"post{gres,master}\"", true),
        ("user = \"postgres\"", true),
        ("user = 104", true),
        ("user = \"104\"", true),
        ("user = 0", false),
        ("user = \"postgres\"\nexecutable = \"postgres\"\nunit = \"postgres*\"", true),
        ("user = \"postgres\"\nexecutable = \"psql\"", false),
        ("command = \"postgres: check*\"", true),
        ("command = \"postgres\"", false),
        ("comm = \"post*\"", true),
        ("container = \"*\"", false),
    ] {
        let rules = rules(&[("etc/a.toml", &format!("[[rule]]\n{names}\nmanage = true\n"))]);
        assert_eq!(rules.decide(&facts).is_some(), matches, "{names}");
    }
}

#[test]
fn the_last_rule_that_matches_decides() {
    let any = "[[rule]]\nexecutable = \"*\"\n";
    let all = rules(&[("etc/10.toml", &format!("{any}manage = true"))]);
    assert_eq!(class(&all, &postgres()), Some(Class::Normal));
    let later = rules(&[
        ("etc/10.toml", &format!("{any}class = \"batch\"")),
        ("etc/20.toml", &format!("{any}class = \"latency\"\n{any}manage = true")),
    ]);
    assert_eq!(class(&later, &postgres()), Some(Class::Latency), "`manage` names no class");
    let ignored = rules(&[
        ("etc/20.toml", "[[rule]]\nuser = \"postgres\"\nignore = true"),
        ("etc/10.toml", &format!("{any}class = \"latency\"")),
    ]);
    assert_eq!(class(&ignored, &postgres()), None, "files by name, not by time");
    let alone = rules(&[("etc/10.toml", &format!("{any}alone = true"))]);
    assert_eq!(class(&alone, &postgres()), Some(Class::Alone));
    assert_eq!(class(&Rules::default(), &postgres()), None, "without rules nothing is managed");
}

#[test]
fn a_file_replaces_the_one_of_the_same_name_in_an_earlier_directory() {
    let any = "[[rule]]\nexecutable = \"*\"\n";
    let batch = format!("{any}class = \"batch\"");
    let rules_of = |text: &str| rules(&[("lib/50-db.toml", &batch), ("etc/50-db.toml", text)]);
    assert_eq!(
        class(&rules_of(&format!("{any}class = \"latency\"")), &postgres()),
        Some(Class::Latency)
    );
    assert_eq!(class(&rules_of(""), &postgres()), None, "masked");
    let both =
        rules(&[("lib/50-db.toml", &batch), ("etc/40-db.toml", &format!("{any}ignore = true"))]);
    assert_eq!(class(&both, &postgres()), Some(Class::Batch));
    assert!(rules(&[("etc/readme.txt", "not rules")]).is_empty());
}

#[test]
fn a_bad_file_is_reported_and_the_others_stay_applied() {
    let good = "[[rule]]\nuser = \"postgres\"\nmanage = true\n";
    for (bad, parts) in [
        ("[[rule]]\nuser = \"x\"\nmanag = true", &["line 3", "manag"][..]),
        ("[[rule]]\nuser = \"x\"\nclass = \"fast\"", &["line 3", "class", "'fast'", "latency"]),
        ("[[rule]]\nunit = \"[\"\nmanage = true", &["line 2", "unit"]),
        ("[[rule]]\nmanage = true", &["line 1, column 1: a rule names at least one of"]),
        ("[[rule]]\nuser = \"x\"", &["line 1, column 1: a rule says one of"]),
        ("[[rule]]\nuser = \"x\"\nignore = true\nmanage = true", &["`ignore`"]),
        ("[[rule]]\nuser = \"x\"\nalone = true\nclass = \"batch\"", &["exclude each other"]),
        ("[[rule]]\npod = \"web\"\nmanage = true", &["line 2, column 7: ", "NAMESPACE/NAME"]),
        ("[[rule]]\nlabel = \"web\"\nmanage = true", &["line 2"]),
        ("[[rules]]\nuser = \"x\"", &["line 1", "rules"]),
        ("[[rule]", &["line 1"]),
    ] {
        let (rules, errors) = try_rules(&[("etc/a.toml", bad), ("etc/b.toml", good)]);
        let [error] = &errors[..] else { panic!("one error for {bad}: {errors:?}") };
        for part in ["a.toml", "not applied"].iter().chain(parts) {
            assert!(error.contains(part), "{part} of {bad}: {error}");
        }
        assert_eq!(class(&rules, &postgres()), Some(Class::Normal), "{bad}");
    }
}

/// Why this text is refused.
fn why(text: &str) -> String {
    file::parse(text).expect_err(text)
}

#[test]
fn a_mistake_in_a_later_rule_is_reported_there() {
    let good = "# First.\n[[rule]]\nuser = \"x\"\nmanage = true\n";
    for (bad, shown) in [
        (
            "[[rule]]\npod = \"c\"\nmanage = true",
            "line 6, column 7: a `pod` is written as NAMESPACE/NAME, as in \"shop/web-*\"\n  |\n\
             6 | pod = \"c\"\n  |       ^^^",
        ),
        ("[[rule]]\nmanage = true", "line 5, column 1: a rule names at least one of"),
        ("[[rule]]\nuser = 1", "line 5, column 1: a rule says one of manage, ignore, class, alone"),
        ("[[rule]]\nuser = 1\nmanage = true\nignore = true", "line 8, column 10: `ignore` goes"),
        ("[[rule]]\nuser = 1\nalone = true\nclass = \"batch\"", "line 7, column 9: `alone` and"),
        ("[[rule]]\nuser = 1\nmanage = 1", "line 7, column 10: expected true or false"),
    ] {
        for after in ["", "\n[[rule]]\nuser = 2\nmanage = true"] {
            let why = why(&format!("{good}{bad}{after}"));
            assert!(why.starts_with(shown), "{bad}: {why}");
        }
    }
    let many: Vec<String> = (0..65).map(|key| format!("k{key} = \"x\"")).collect();
    let why = why(&format!("{good}[[rule]]\nlabel = {{ {} }}\nmanage = true", many.join(", ")));
    assert!(why.starts_with("line 5, column 1: a rule names at most 64 things"), "{why}");
}

#[test]
fn what_says_nothing_is_refused_with_what_to_say() {
    for (says, shown) in [
        (
            "manage = false",
            "line 3, column 10: `manage = false` says nothing; to leave programs to the OS, use \
             `ignore = true`",
        ),
        (
            "manage = false\nclass = \"batch\"",
            "line 3, column 10: `manage = false` and `class` exclude each other; to leave programs \
             to the OS, use `ignore = true`",
        ),
        (
            "alone = true\nmanage = false",
            "line 4, column 10: `manage = false` and `alone` exclude each other; ",
        ),
        ("ignore = false", "line 3, column 10: `ignore = false` says nothing; a rule says one of"),
        ("alone = false", "line 3, column 9: `alone = false` says nothing; a rule says one of"),
    ] {
        let why = why(&format!("[[rule]]\nuser = 1\n{says}"));
        assert!(why.starts_with(shown), "{says}: {why}");
    }
    assert!(file::parse("[[rule]]\nuser = 1\nmanage = false\nignore = true").is_ok());
}

#[test]
fn a_wrong_kind_of_value_is_reported_in_words_of_toml() {
    let table = "expected a table of keys and patterns, as in { app = \"web\" }, found ";
    let list = "expected a list: each rule begins with [[rule]], found ";
    for (text, shown) in [
        ("[[rule]]\nlabel = \"app=x\"", format!("line 2, column 9: {table}string \"app=x\"")),
        ("[[rule]]\nlabel = []", format!("line 2, column 9: {table}a list")),
        ("[[rule]]\nlabel.app = 1", "line 2, column 13: expected text in quotes, found".to_owned()),
        ("[rule]\nuser = 1", format!("line 1, column 1: {list}a table")),
        ("rule = 3", format!("line 1, column 8: {list}integer `3`")),
        ("rule = [3]", "line 1, column 9: expected a table, which begins with [[rule]]".to_owned()),
        ("[[rule]]\nuser = -1", "line 2, column 8: a user is a name in quotes or".to_owned()),
        ("[[rule]]\nuser = \"\"", "line 2, column 8: the name of a user is not empty".to_owned()),
        ("[[rule]]\nunit = 3", "line 2, column 8: expected text in quotes, found".to_owned()),
        ("[[rule]]\nclas = 3", "line 2, column 1: unknown key `clas`, expected one of".to_owned()),
        ("[[rule]]\nunit = x", "line 2, column 8: this is no TOML: ".to_owned()),
    ] {
        let why = why(text);
        assert!(why.starts_with(&shown), "{text}: {why}");
    }
}

#[test]
fn a_file_that_is_not_utf_8_is_reported_by_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), b"[[rule]]\nuser = 'M\xfcller'\nmanage = true")
        .unwrap();
    let errors = Rules::of(vec![folder.path().to_owned()]).read();
    let [error] = &errors[..] else { panic!("one error: {errors:?}") };
    assert!(error.why.starts_with("line 2, column 10: this is no text in UTF-8"), "{error}");
}

#[test]
fn empty_and_overlong_patterns_are_refused() {
    let rule = |key: &str, pattern: &str| format!("[[rule]]\n{key} = \"{pattern}\"\nmanage = true");
    for key in ["cgroup", "unit", "pod", "container", "image", "executable", "command", "comm"] {
        let empty = why(&rule(key, ""));
        assert!(
            empty.starts_with("line 2, column ") && empty.contains("an empty pattern"),
            "{empty}"
        );
        let long = why(&rule(key, &"*".repeat(200_000)));
        let says = "at most 4096 characters, and this one has 200000";
        assert!(long.starts_with("line 2, column ") && long.contains(says), "{long}");
        assert!(long.len() < 1000, "{long}");
    }
    assert!(file::parse(&rule("container", &"\u{fc}".repeat(4096))).is_ok());
    let label = |value: &str| format!("[[rule]]\nlabel = {{ a = \"{value}\" }}\nmanage = true");
    assert!(why(&label(&"a".repeat(4097))).contains("at most 4096"));
    let rules = rules(&[("etc/a.toml", &label(""))]);
    assert_eq!(class(&rules, &nginx(&[("a", "")])), Some(Class::Normal), "values may be empty");
    assert_eq!(class(&rules, &nginx(&[("a", "b")])), None);
    for (pod, container) in [(Some(""), None), (None, Some(""))] {
        let error = ContainerPatterns::new(pod, container).unwrap_err().to_string();
        assert!(error.contains("an empty pattern"), "{error}");
    }
}

#[test]
fn what_can_match_nothing_is_refused() {
    let rule = |names: &str| format!("[[rule]]\n{names}\nmanage = true");
    for pod in ["/web", "shop/", "/", "a/b/c", "*/*/web", "//"] {
        let why = why(&rule(&format!("pod = \"{pod}\"")));
        assert!(why.starts_with("line 2, column 7: a `pod` is written as NAMESPACE/NAME"), "{why}");
    }
    for pod in ["*/web", "shop/*", "{shop,test}/web", "{shop/a,test/b}", "shop/[a-c]", "*/*"] {
        assert!(file::parse(&rule(&format!("pod = \"{pod}\""))).is_ok(), "{pod}");
    }
    for label in ["label = { a = \"x\", \"\" = \"x\" }", "label.\"\" = \"x\""] {
        let why = why(&rule(label));
        let column = label.find("\"\"").unwrap() + 1;
        let shown = format!("line 2, column {column}: the key of a label is not empty");
        assert!(why.starts_with(&shown), "{label}: {why}");
    }
}

#[test]
fn a_file_that_became_bad_keeps_what_was_read_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    let mut rules = Rules::of(vec![folder.path().to_owned()]);
    fs::write(&path, "[[rule]]\nuser = 104\nclass = \"batch\"").unwrap();
    assert!(rules.read().is_empty());
    fs::write(&path, "[[rule]]\nuser = 104\nclass = \"late\"").unwrap();
    let said = |rules: &mut Rules| rules.read().iter().map(ToString::to_string).collect::<String>();
    let still = "a.toml are not applied; those read of it before still apply: line 3, ";
    for read in ["once", "again"] {
        let said = said(&mut rules);
        assert!(said.contains(still), "{read}: {said}");
    }
    assert_eq!(class(&rules, &postgres()), Some(Class::Batch));
    fs::remove_file(&path).unwrap();
    assert!(rules.read().is_empty());
    assert_eq!(class(&rules, &postgres()), None);
    fs::write(&path, "[[rule]]\nuser = 104\nclass = \"late\"").unwrap();
    let new = said(&mut rules);
    assert!(new.contains("a.toml are not applied: line 3, "), "nothing was there before: {new}");
}

/// A container of a pod, with these annotations.
fn nginx(annotations: &[(&str, &str)]) -> Facts {
    let folder = tempfile::tempdir().unwrap();
    let id = "a".repeat(64);
    let mut all = vec![
        ("io.kubernetes.cri.sandbox-name", "web-0"),
        ("io.kubernetes.cri.sandbox-namespace", "shop"),
        ("io.kubernetes.cri.container-name", "nginx"),
        ("io.kubernetes.cri.image-name", "docker.io/library/nginx:1.25"),
        ("app", "web"),
    ];
    all.extend(annotations);
    let all: BTreeMap<&str, &str> = all.into_iter().collect();
    let path = format!("/docker/{id}");
    let bundle = serde_json::json!({ "annotations": all, "linux": { "cgroupsPath": path } });
    let place = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}");
    fs::create_dir_all(folder.path().join(&place)).unwrap();
    fs::write(folder.path().join(place).join("config.json"), bundle.to_string()).unwrap();
    let superuser = rustix::process::geteuid().as_raw();
    let root = folder.path().to_owned();
    let folders = symbiont_containers::Folders { root, superuser, ..Default::default() };
    let mut containers = symbiont_containers::Containers::new(folders);
    let owner = symbiont_containers::Owner { uid: 0, home: None };
    let container = containers.identify(&format!("0::{path}"), &owner, std::time::Instant::now());
    let cgroup = format!("{path}/inner");
    Facts { container, cgroup, executable: Some("/usr/sbin/nginx".to_owned()), ..Facts::default() }
}

#[test]
fn rules_name_containers() {
    let facts = nginx(&[]);
    for (names, matches) in [
        ("pod = \"shop/web-*\"", true),
        ("pod = \"*/web-0\"", true),
        ("pod = \"other/web-*\"", false),
        ("container = \"nginx\"", true),
        ("image = \"*/nginx:*\"", true),
        ("label = { app = \"web\" }", true),
        ("label = { app = \"w*\", \"io.kubernetes.cri.sandbox-name\" = \"*\" }", true),
        ("label = { app = \"web\", tier = \"*\" }", false),
        ("pod = \"shop/*\"\nexecutable = \"redis\"", false),
        ("pod = \"shop/*\"\nexecutable = \"nginx\"", true),
    ] {
        let rules = rules(&[("etc/a.toml", &format!("[[rule]]\n{names}\nmanage = true\n"))]);
        assert!(rules.needs().container);
        let verdict = rules.decide(&facts);
        assert_eq!(verdict.is_some(), matches, "{names}");
        assert!(verdict.is_none_or(|verdict| verdict.group == Group::Container), "{names}");
    }
    let cheap = rules(&[("etc/a.toml", "[[rule]]\nunit = \"a\"\nmanage = true\n")]);
    assert_eq!(cheap.needs(), Needs::default(), "what is not asked for is not read");
}

#[test]
fn a_users_runtime_names_no_pod() {
    let rules = rules(&[("etc/a.toml", "[[rule]]\npod = \"shop/*\"\nmanage = true\n")]);
    let facts = nginx(&[]);
    assert!(rules.decide(&facts).is_some());
    let container = facts.container.clone().map(Arc::unwrap_or_clone).unwrap();
    for uid in [None, Some(4242)] {
        let stated = Identity { stated_by: uid, ..container.clone() };
        let posing = Facts { container: Some(Arc::new(stated)), ..facts.clone() };
        assert!(rules.decide(&posing).is_none(), "{uid:?}");
    }
}

#[test]
fn annotations_count_less_than_rules() {
    let asks = |key: &str, value: &str| nginx(&[(&format!("symbiont.dev/{key}"), value)]);
    let batch = asks("class", "batch");
    let with = |text: &str, allow: bool| {
        let mut rules = rules(&[("etc/a.toml", text)]);
        rules.allow_annotations(allow);
        rules
    };
    assert_eq!(class(&with("", false), &batch), None, "not unless it is allowed");
    let allowed = with("", true);
    assert!(!allowed.is_empty() && allowed.needs().container);
    let verdict = allowed.decide(&batch).unwrap();
    assert_eq!((verdict.class, verdict.group), (Class::Batch, Group::Container));
    assert_eq!(verdict.by, "annotations of shop/web-0/nginx");
    assert_eq!(class(&allowed, &asks("manage", "true")), Some(Class::Normal));
    for nothing in
        [asks("manage", "false"), asks("class", "fastest"), asks("manage", "yes"), nginx(&[])]
    {
        assert_eq!(class(&allowed, &nothing), None);
    }
    let managed = with("[[rule]]\ncontainer = \"*\"\nmanage = true", true);
    assert_eq!(class(&managed, &batch), Some(Class::Batch), "the rule names no class");
    assert_eq!(class(&managed, &asks("manage", "false")), Some(Class::Normal));
    let latency = with("[[rule]]\nexecutable = \"nginx\"\nclass = \"latency\"", true);
    assert_eq!(class(&latency, &batch), Some(Class::Latency));
    let ignored = with("[[rule]]\npod = \"shop/*\"\nignore = true", true);
    assert_eq!(class(&ignored, &batch), None);
}

#[test]
fn facts_of_a_process_are_read() {
    let process = procfs::process::Process::myself().unwrap();
    let mut around = Surroundings::default();
    let facts =
        Facts::read(&process, Needs { container: true, command: true }, &mut around).unwrap();
    let words = process.cmdline().unwrap();
    assert_eq!(facts.command.as_deref(), Some(words.join(" ").as_str()));
    assert!(facts.comm.is_some_and(|name| !name.is_empty() && !name.ends_with('\n')));
    assert!(facts.cgroup.starts_with('/'));
    let cheap = Facts::read(&process, Needs::default(), &mut around).unwrap();
    assert_eq!((cheap.command, cheap.comm, cheap.container), (None, None, None));
}

#[test]
fn the_daemon_and_its_ancestors_are_never_managed() {
    let rules = rules(&[("etc/a.toml", "[[rule]]\nexecutable = \"*\"\nmanage = true")]);
    let mut finder = Finder::new();
    let scan = finder.scan(&rules, &mut Surroundings::default(), |_| false);
    let own = [1, std::process::id()];
    assert!(scan.found.iter().all(|found| !own.contains(&found.process)), "{scan:?}");
    assert!(!scan.own.is_empty(), "it is reported");
}

#[test]
fn the_innermost_service_or_scope_is_the_unit() {
    let session = "/user.slice/user-1000.slice/session-3.scope";
    let app = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope";
    assert_eq!(process::unit_of(session).as_deref(), Some("session-3.scope"));
    assert_eq!(process::unit_of(app).as_deref(), Some("app-x.scope"));
    assert_eq!(process::unit_of("/system.slice"), None);
    assert_eq!(process::unit_of("/system.slice/cron.service/sub").as_deref(), Some("cron.service"));
}

#[test]
fn the_example_can_be_used_when_its_comments_are_opened() {
    let example = include_str!("../../../../../packaging/rules-example.toml");
    assert_eq!(file::parse(example).unwrap().len(), 0, "it says nothing by itself");
    let opened: Vec<&str> = example
        .lines()
        .filter(|line| !line.starts_with("# "))
        .map(|line| line.trim_start_matches('#'))
        .collect();
    assert_eq!(file::parse(&opened.join("\n")).unwrap().len(), 6);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = file::parse(&text);
    }
}
