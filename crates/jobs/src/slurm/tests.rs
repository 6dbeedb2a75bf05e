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
    assert!(asks.asks_for_nodes && !asks.waits_for_us());
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
    assert!(parse_nodes("n1|0/1/0/4294967296|idle|").0.is_empty());
}

#[test]
fn only_a_job_that_slurm_shows_as_marked_by_its_number_is_confirmed() {
    let (jobs, _) = parse_jobs(QUEUE).unwrap();
    let confirm = |text: &str| confirm(text, &jobs[1]);
    let good = "3   |1000|1795721569|PD|symbiont:waits  |\n";
    assert_eq!(confirm(good), Ok(()));
    // A job of two parts.
    assert_eq!(confirm(&format!("4|1000|1795721569|PD||\n{good}")), Ok(()));
    assert!(confirm(&good.replace("3 ", "4 ")).unwrap_err().contains("does not show it"));
    assert!(confirm(&good.replace("1000", "0")).unwrap_err().contains("another job"));
    assert!(confirm(&good.replace("569", "570")).unwrap_err().contains("another job"));
    assert!(confirm(&good.replace("PD", "R ")).unwrap_err().contains("not wait any more"));
    assert!(confirm(&good.replace("waits", "wait")).unwrap_err().contains("not left to Symbiont"));
    for odd in ["", "\n", "3|1000|1795721569|PD|symbiont:waits", &good.repeat(2)] {
        assert!(confirm(odd).is_err(), "{odd:?}");
    }
    // A `|` in a field is one field more.
    assert!(confirm("3|1000|1795721569|PD|x|symbiont:waits|\n").is_err());
}

#[test]
fn nodes_count_once_and_those_that_take_no_job_have_no_idle_cpu() {
    let text = "n2 |1/3/0/4|mix|10.0.0.2\nn1|0/2/0/2|idle |\nn2|1/3/0/4|mix|10.0.0.2\nn3|0/2/0/2|drain|\n\
         n4|0/2/0/2|idle*|n4.example\n";
    let (nodes, errors) = parse_nodes(text);
    assert_eq!(errors, []);
    let idle: Vec<_> =
        nodes.iter().map(|node| (node.name.as_str(), node.idle, node.cpus)).collect();
    assert_eq!(idle, [("n1", 2, 2), ("n2", 3, 4), ("n3", 0, 2), ("n4", 0, 2)]);
    let reached: Vec<_> = nodes.iter().map(|node| node.address.as_str()).collect();
    assert_eq!(reached, ["n1", "10.0.0.2", "n3", "n4.example"]);
    assert_eq!(parse_nodes("n1|1/2/3|idle|n1").1.len(), 1);
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
            "dependency": text, "licenses": text, "tres_freq": text, "system_comment": text,
        })
    };
    serde_json::json!({ "jobs": [job(1, MARK), job(2, "")] }).to_string()
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\\n|]{0,200}") {
        let _ = parse_jobs(&text);
        let (nodes, errors) = parse_nodes(&text);
        prop_assert!(nodes.len() + errors.len() <= text.lines().count());
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
