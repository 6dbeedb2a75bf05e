use proptest::prelude::*;

use super::*;

/// As Slurm 22.05 writes them, with fewer fields.
const QUEUE: &str = r#"{"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [], "jobs": [
  {"job_id": 4, "job_state": "RUNNING", "state_reason": "None", "priority": 4294901756, "partition": "plain", "qos": "",
   "user_id": 0, "cpus": 1, "node_count": 1, "submit_time": 1795721569, "start_time": 1795721570,
   "end_time": 1795725170, "time_limit": 60, "nodes": "n1", "required_nodes": "", "admin_comment": "",
   "batch_flag": false, "name": "wrap"},
  {"job_id": 3, "job_state": "PENDING", "state_reason": "BeginTime", "priority": 4294901757, "partition": "symbiont",
   "qos": "normal", "user_id": 1000, "cpus": 2, "node_count": 1, "submit_time": 1795721569,
   "start_time": 1795725169, "end_time": 0, "time_limit": null, "nodes": "", "required_nodes": "",
   "admin_comment": "symbiont:waits", "batch_flag": true, "name": "my|job\n7 |PD|"},
  {"job_id": 9, "job_state": "PENDING", "state_reason": "BeginTime", "priority": 1, "user_id": 1000, "cpus": 1,
   "submit_time": 1795721569, "required_nodes": "n2", "admin_comment": "symbiont:waits"}]}"#;
/// As Slurm 24.11 writes them.
const NEWER: &str = r#"{"jobs": [
  {"job_id": 2, "job_state": ["PENDING"], "state_reason": "BeginTime", "admin_comment": "symbiont:waits",
   "priority": {"set": true, "infinite": false, "number": 7}, "user_id": 5, "batch_flag": true,
   "cpus": {"set": true, "infinite": false, "number": 2}, "time_limit": {"set": false, "infinite": true, "number": 0},
   "submit_time": {"set": true, "infinite": false, "number": 1795841727}, "required_nodes": "",
   "end_time": {"set": false, "infinite": false, "number": 0}},
  {"job_id": 3, "job_state": ["COMPLETED", "COMPLETING"], "user_id": 5, "nodes": "n[1-2]",
   "submit_time": {"set": true, "infinite": false, "number": 1}}], "errors": []}"#;

#[test]
fn a_queue_is_read_as_slurm_writes_it() {
    let (jobs, errors) = parse_jobs(QUEUE).unwrap();
    assert_eq!(errors, Vec::<String>::new());
    let [runs, waits, asks] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!(
        (runs.id, runs.state, runs.runs_on.as_slice()),
        (4, State::Running, &["n1".to_owned()][..])
    );
    assert!(!runs.waits_for_us() && !runs.is_marked && !runs.is_batch && runs.qos.is_empty());
    assert!(waits.waits_for_us() && waits.is_batch);
    assert_eq!((waits.cpus, waits.user, waits.name.as_str()), (2, 1000, "my|job\n7 |PD|"));
    assert_eq!((waits.submitted_s, waits.start_s), (1_795_721_569.0, Some(1_795_725_169.0)));
    assert_eq!((runs.ends_s, waits.ends_s), (Some(1_795_725_170.0), None));
    assert_eq!([runs, waits].map(|job| job.limit_s), [Some(3600.0), None]);
    assert!(asks.asked == "n2" && !asks.waits_for_us());
}

#[test]
fn numbers_and_words_of_newer_releases_are_read() {
    let (jobs, errors) = parse_jobs(NEWER).unwrap();
    assert_eq!(errors, Vec::<String>::new());
    let [waits, completes] = &jobs[..] else { panic!("{jobs:?}") };
    assert!(waits.waits_for_us());
    assert_eq!((waits.priority, waits.cpus, waits.limit_s, waits.ends_s), (7, 2, None, None));
    assert_eq!((completes.state, completes.runs_on.len()), (State::Running, 2));
}

#[test]
fn a_job_that_is_not_understood_is_reported_and_the_others_count() {
    let odd = r#"{"job_id": 8, "job_state": "PENDING", "user_id": 1}, {"job_id": "x"}, 7,
        {"job_id": 5, "job_state": "PENDING", "user_id": 1, "submit_time": 1, "cpus": 4294967296},"#;
    let (jobs, errors) =
        parse_jobs(&QUEUE.replacen(r#""jobs": ["#, &format!(r#""jobs": [{odd}"#), 1)).unwrap();
    assert_eq!(jobs.len(), 3);
    assert_eq!(
        errors,
        [
            "squeue: a job 8 is not understood: it has no submit_time",
            "squeue: a job is not understood: it has no job_id",
            "squeue: a job is not understood: it has no job_id",
            "squeue: a job 5 is not understood: 4294967296 cpus are too many",
        ]
    );
    let none = parse_jobs("JOBID PARTITION").unwrap_err().to_string();
    assert!(none.contains("it takes Slurm 21.08 or newer"), "{none}");
    assert_eq!(parse_jobs("{}").unwrap_err(), JobsError::NoJobs);
}

#[test]
fn only_a_job_that_slurm_shows_as_marked_by_its_number_is_confirmed() {
    let (jobs, _) = parse_jobs(QUEUE).unwrap();
    let confirm = |text: &str| confirm(text, &jobs[1]);
    let good = "3   |1000|1795721569|1795725169|PD|symbiont:waits=1795725169  |\n";
    assert_eq!(confirm(good), Ok(()));
    assert_eq!(super::confirm(&good.replace("|1795725169", "|N/A"), &jobs[1]), Ok(()));
    // A job of two parts.
    assert_eq!(confirm(&format!("4|1000|1795721569|1|PD||\n{good}")), Ok(()));
    assert!(confirm(&good.replace("3 ", "4 ")).unwrap_err().contains("does not show it"));
    assert!(confirm(&good.replace("1000", "0")).unwrap_err().contains("another job"));
    assert!(confirm(&good.replace("569", "570")).unwrap_err().contains("another job"));
    assert!(confirm(&good.replace("PD", "R ")).unwrap_err().contains("not wait any more"));
    assert!(confirm(&good.replace("waits", "wait")).unwrap_err().contains("not left to Symbiont"));
    for odd in ["", "\n", "3|1000|1795721569|1|PD|symbiont:waits", &good.repeat(2)] {
        assert!(confirm(odd).is_err(), "{odd:?}");
    }
    // A `|` in a field is one field more.
    assert!(confirm("3|1000|1795721569|1|PD|x|symbiont:waits|\n").is_err());
}

/// As Slurm 22.05 and 24.11 write them, with fewer fields.
const NODES: &str = "\
NodeName=n2 CoresPerSocket=2  CPUAlloc=2 CPUEfctv=6 CPUTot=8 ActiveFeatures=fast,big Gres=(null) NodeAddr=10.0.0.2 \
OS=Linux 6.1 #1 SMP RealMemory=4000 AllocMem=1000 Sockets=2 MemSpecLimit=200 State=MIXED+PLANNED ThreadsPerCore=2 \
TmpDisk=70 Partitions=p,q  Reason=State=DOWN Partitions=x
NodeName=n1 CoresPerSocket=1  CPUAlloc=0 CPUTot=2 ActiveFeatures=(null) NodeAddr=n1 RealMemory=1000 AllocMem=0 \
Sockets=2 State=IDLE+CLOUD+POWERED_DOWN TmpDisk=0 Partitions=p
NodeName=n3 CPUAlloc=0 CPUTot=2 State=IDLE+DRAIN Partitions=p
NodeName=n4 CPUAlloc=0 CPUTot=2 State=IDLE*
NodeName=n5 CPUAlloc=0 CPUTot=2 State=IDLE+MAINTENANCE+RESERVED
NodeName=n5 CPUAlloc=0 CPUTot=4294967296 State=IDLE
";

#[test]
fn nodes_are_read_with_what_jobs_can_have_of_them() {
    let (nodes, errors) = Layout::parse_nodes(NODES);
    let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["line 6 of scontrol show node is not understood: CPUTot is too large"]);
    let idle: Vec<_> =
        nodes.iter().map(|node| (node.name.as_str(), node.idle, node.takes_jobs)).collect();
    // One that is planned and one that is powered down take jobs; those that drain, are gone or reserved do not.
    assert_eq!(
        idle,
        [("n1", 2, true), ("n2", 4, true), ("n3", 0, false), ("n4", 0, false), ("n5", 0, false)]
    );
    let node = &nodes[1];
    // Two CPUs are for the system alone.
    assert_eq!((node.cpus, node.cpus_of_core, node.cpus_of_socket), (6, 2, 4));
    assert_eq!((node.memory_mb, node.memory_free_mb, node.disk_mb), (3800, 2800, 70));
    assert_eq!(
        (node.features.join(" "), node.partitions.join(" ")),
        ("fast big".into(), "p q".into())
    );
    assert_eq!(node.address, "10.0.0.2");
}

#[test]
fn partitions_whose_cpus_are_not_one_jobs_alone_are_left_to_slurm() {
    let trouble = |words: &str| {
        let (all, errors) = Layout::parse_partitions(&format!("PartitionName=p {words}"));
        assert_eq!(errors, []);
        all[0].trouble.clone()
    };
    let usual =
        "ExclusiveUser=NO MaxCPUsPerNode=UNLIMITED OverSubscribe=NO SelectTypeParameters=NONE";
    assert_eq!(trouble(usual), None);
    assert_eq!(trouble("OverSubscribe=YES:4"), None);
    for odd in [
        "OverSubscribe=EXCLUSIVE",
        "OverSubscribe=FORCE:2",
        "MaxCPUsPerNode=1",
        "ExclusiveUser=YES",
        "SelectTypeParameters=CR_SOCKET",
    ] {
        assert_eq!(trouble(odd).unwrap(), format!("its partition has {odd}"));
    }
    let memory = |words: &str| Layout::parse_partitions(words).0[0].default_memory;
    assert_eq!(memory("PartitionName=p DefMemPerNode=UNLIMITED"), Memory::Default);
    assert_eq!(memory("PartitionName=p DefMemPerCPU=100"), Memory::OfCpu(100));
}

#[test]
fn how_slurm_gives_cpus_and_memory_is_read() {
    let of = |kind: &str, parameters: &str| {
        Selection::parse(&format!("SelectType = {kind}\nSelectTypeParameters    = {parameters}\n"))
    };
    assert_eq!(of("select/cons_tres", "CR_CPU"), Selection::default());
    assert!(of("select/cons_tres", "CR_CORE_MEMORY,CR_PACK_NODES").with_memory);
    assert!(of("select/cons_res", "CR_SOCKET").whole_sockets);
    assert!(of("select/cons_tres", "CR_CORE,CR_ONE_TASK_PER_CORE").trouble.is_some());
    assert!(of("select/linear", "NONE").trouble.is_some());
}

#[test]
fn settings_are_read_from_the_configuration() {
    let text = "Configuration data as of 5\nPluginDir    = /a:/b=c\nEpilog  = (null)\nProlog = \n\n\
                Cgroup Support Configuration:\nConstrainCores          = yes\n\nSlurmctld(primary) at x is UP\n";
    let of = |name| config_value(text, name);
    assert_eq!((of("PluginDir"), of("ConstrainCores")), (Some("/a:/b=c"), Some("yes")));
    assert_eq!([of("Epilog"), of("Prolog"), of("Constrain")], [None; 3]);
}

#[test]
fn reservations_are_read() {
    let text = "ReservationName=r StartTime=50 EndTime=60 Nodes=n[1-2] NodeCnt=2\n\
                ReservationName=l StartTime=70 EndTime=80 Nodes=(null) Licenses=x\n";
    let (all, errors) = Layout::parse_reservations(text);
    assert_eq!(errors, []);
    assert_eq!(all[0], Reservation { nodes: vec!["n1".into(), "n2".into()], from_s: 50.0 });
    assert!(all[1].nodes.is_empty());
    assert_eq!(
        Layout::parse_reservations("No reservations in the system\n"),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn what_a_job_needs_is_read_or_said_not_to_be_understood() {
    let needs = |fields: &str| {
        let job: serde_json::Value = serde_json::from_str(&format!("{{{fields}}}")).unwrap();
        Needs::of(&job)
    };
    // As Slurm 22.05 and 24.11 write a job that asks for nothing special.
    let plain = r#""tasks": 1, "cpus_per_task": null, "core_spec": null, "thread_spec": null, "shared": null,
        "tres_per_node": "", "features": "", "het_job_id": 0, "array_job_id": 0, "contiguous": false"#;
    assert_eq!(needs(plain), Needs { tasks: 1, ..Needs::default() });
    let newer = r#""tasks": {"set": true, "infinite": false, "number": 1}, "core_spec": 0, "thread_spec": 32766,
        "shared": [], "tasks_per_core": {"set": false, "infinite": true, "number": 0}, "tres_per_task": "cpu=2",
        "deadline": {"set": true, "infinite": false, "number": 0}"#;
    assert_eq!(needs(newer), Needs { tasks: 1, ..Needs::default() });
    let some = needs(
        r#""features": "fast&big", "excluded_nodes": "n[1-2]", "memory_per_cpu": 5, "minimum_tmp_disk_per_node": 7"#,
    );
    assert_eq!(
        (some.features.join(" "), some.excluded.join(" ")),
        ("fast big".into(), "n1 n2".into())
    );
    assert_eq!((some.memory, some.disk_mb, some.other), (Memory::OfCpu(5), 7, None));
    for odd in [
        r#""features": "fast|big""#,
        r#""features": "[a*2&b]""#,
        r#""tres_per_node": "gres:gpu:1""#,
        r#""tres_per_task": "cpu=1,gres/gpu=1""#,
        r#""licenses": "x""#,
        r#""resv_name": "r""#,
        r#""shared": "none""#,
        r#""shared": ["none"]"#,
        r#""thread_spec": 1"#,
        r#""threads_per_core": 1"#,
        r#""contiguous": true"#,
        r#""deadline": 9"#,
        r#""het_job_id": 4"#,
        r#""array_job_id": {"set": true, "infinite": false, "number": 4}"#,
        r#""excluded_nodes": "n[""#,
    ] {
        assert!(needs(odd).other.is_some(), "{odd}");
    }
}

#[test]
fn cpus_are_counted_in_the_units_that_slurm_gives() {
    let needs = |tasks, cpus_of_task| Needs { tasks, cpus_of_task, ..Needs::default() };
    assert_eq!([1, 2, 3].map(|cpus| needs(1, 0).units(cpus, 2)), [1, 1, 2]);
    assert_eq!(needs(2, 3).units(6, 2), 4, "each task has cores of its own");
    assert_eq!(needs(4, 1).units(4, 1), 4);
}

#[test]
fn the_names_of_qos_are_read() {
    let text = "Current Association Manager state\n\nQOS Records\n\nQOS=normal(1)\n    UsageRaw=0.000000\n    \
                GrpJobs=N(0) GrpJobsAccrue=N(0)\nQOS=long (slow)(7)\n    UsageRaw=1.0\n";
    assert_eq!(parse_qos(text), ["long (slow)", "normal"]);
    let none = "Current Association Manager state\n\nNo QOS currently cached in Slurm.\n\n";
    assert_eq!(parse_qos(none), Vec::<String>::new());
}

#[test]
fn the_end_of_a_job_is_read() {
    let read = |state, start| parse_ended(&format!("3 |{state}|{start} |20 |\n"), 3);
    let ended = |ended_well, elapsed_s| Ok(Some(EndedJob { ended_well, elapsed_s }));
    assert_eq!(read("CD", "17"), ended(true, 3.0));
    assert_eq!(read("F", "17"), ended(false, 3.0));
    assert_eq!(read("CA", "N/A"), ended(false, 0.0));
    assert_eq!(read("R", "17"), Ok(None));
    assert!(read("CD", "N/A").is_err());
    assert!(parse_ended("4|CD|17|20|\n", 3).is_err());
    assert!(parse_ended("", 3).is_err());
}

#[test]
fn lists_of_nodes_are_expanded() {
    assert_eq!(hosts("n1").unwrap(), ["n1"]);
    assert_eq!(hosts("a[1-2,08-10]x,b").unwrap(), ["a1x", "a2x", "a08x", "a09x", "a10x", "b"]);
    assert_eq!(hosts("r[1-2]n[3,4]").unwrap(), ["r1n3", "r1n4", "r2n3", "r2n4"]);
    for odd in [
        "n[3-1]",
        "r[17-09]n[1-2]",
        "",
        "a,",
        "a[",
        "a]",
        "a[]",
        "a[1-]",
        "a[x]",
        "a[1-99999999]",
        "[1-999][1-999]",
    ] {
        assert!(hosts(odd).is_err(), "{odd}");
    }
}

/// A queue of two jobs, the first of them marked, with this text wherever a user may write.
fn written_by_users(text: &str) -> String {
    let job = |id: u64, admin_comment: &str| {
        serde_json::json!({
            "job_id": id, "job_state": "PENDING", "state_reason": "BeginTime", "priority": 5, "partition": "p",
            "qos": "", "user_id": 7, "cpus": 1, "node_count": 1, "submit_time": 9, "start_time": 99,
            "end_time": 0, "time_limit": 60, "nodes": "", "required_nodes": "", "batch_flag": true,
            "admin_comment": admin_comment, "name": text, "comment": text, "command": text,
            "current_working_directory": text, "standard_output": text, "wckey": text, "account": text,
            "dependency": text, "tres_freq": text, "system_comment": text,
        })
    };
    serde_json::json!({ "jobs": [job(1, MARK), job(2, "")] }).to_string()
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\\n|]{0,200}") {
        let _ = parse_jobs(&text);
        let (nodes, errors) = Layout::parse_nodes(&text);
        prop_assert!(nodes.len() + errors.len() <= text.lines().count());
        let _ = (Layout::parse_partitions(&text), Layout::parse_reservations(&text), Selection::parse(&text));
        let _ = parse_ended(&text, 3);
        if let Ok(all) = hosts(&text) {
            prop_assert!(all.len() <= MOST_HOSTS);
        }
    }

    #[test]
    fn what_users_write_changes_nothing_but_the_name(
        text in prop_oneof![
            any::<String>(),
            Just("\n2|7|9|PD|symbiont:waits|".to_owned()),
            Just("\"}, {\"job_id\": 2, \"admin_comment\": \"symbiont:waits".to_owned()),
        ],
    ) {
        let named = |text: &str| {
            let (jobs, errors) = parse_jobs(&written_by_users(text)).unwrap();
            assert_eq!(errors, Vec::<String>::new());
            jobs
        };
        let unnamed: Vec<QueuedJob> =
            named(&text).into_iter().map(|job| QueuedJob { name: String::new(), ..job }).collect();
        prop_assert_eq!(&unnamed, &named(""));
        let acted_on = unnamed.iter().filter(|job| job.waits_for_us()).map(|job| job.id);
        prop_assert_eq!(acted_on.collect::<Vec<_>>(), [1]);
    }
}
