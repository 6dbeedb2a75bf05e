use proptest::prelude::*;

use super::*;

/// As Slurm 22.05 wrote them, with shorter fields.
const QUEUE: &str = "\
4   |R  |None     |4294901756|plain    |(null)|0   |1  |1  |1795721569|1795721570|1795725170|1:00:00  |n1   |   |(null)        |wrap
3   |PD |BeginTime|4294901757|symbiont |normal|1000|2  |1  |1795721569|1795725169|N/A       |1-02:00:30|     |   |symbiont:waits|my|job
9   |PD |BeginTime|1         |symbiont |(null)|1000|1  |1-2|1795721569|N/A       |N/A       |UNLIMITED |     |n2 |symbiont:waits|x
";

#[test]
fn a_queue_is_read_as_slurm_writes_it() {
    let (jobs, errors) = parse_jobs(QUEUE);
    assert_eq!(errors, []);
    let [runs, waits, asks] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!(
        (runs.id, runs.state, runs.runs_on.as_slice()),
        (4, State::Running, &["n1".to_owned()][..])
    );
    assert!(!runs.waits_for_us() && !runs.is_marked && runs.qos.is_empty());
    assert!(waits.waits_for_us());
    assert_eq!((waits.cpus, waits.user, waits.name.as_str()), (2, 1000, "my|job"));
    assert_eq!((waits.submitted_s, waits.start_s), (1_795_721_569.0, Some(1_795_725_169.0)));
    assert_eq!((runs.ends_s, waits.ends_s), (Some(1_795_725_170.0), None));
    assert_eq!([runs, waits, asks].map(|job| job.limit_s), [Some(3600.0), Some(93_630.0), None]);
    assert!(asks.asks_for_nodes && !asks.waits_for_us());
}

#[test]
fn a_line_that_is_not_understood_is_reported_and_the_others_count() {
    let text = format!("{QUEUE}slurm_load_jobs error: no\nx|PD|BeginTime|1|p|q|0|1|1|5|5||||||n\n");
    let (jobs, errors) = parse_jobs(&text);
    assert_eq!(jobs.len(), 3);
    let words: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "line 4 of squeue is not understood: 1 fields, 17 expected",
            "line 5 of squeue is not understood: job 'x' is no number",
        ]
    );
}

#[test]
fn more_cpus_than_slurm_can_count_are_refused() {
    let job = |cpus: &str| {
        parse_jobs(&format!("4|R|None|1|p||0|{cpus}|1|1|1|9|1:00|n1|||x"))
            .1
            .pop()
            .map(|error| error.why)
    };
    assert_eq!(job("4294967295"), None);
    assert_eq!(job("4294967296").unwrap(), "4294967296 CPUs are too many");
    assert!(parse_nodes("n1|0/1/0/4294967296|idle|").0.is_empty());
}

#[test]
fn limits_of_time_are_read() {
    let read = ["0:05", "59:00", "2:00:00", "3-00:00:01"].map(span);
    assert_eq!(read, [Some(5.0), Some(3540.0), Some(7200.0), Some(259_201.0)]);
    for none in ["UNLIMITED", "NOT_SET", "", "5", "1-", "1:2:3:4", "-1:00", "1:x"] {
        assert_eq!(span(none), None, "{none}");
    }
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
    let text = |state, code, start| {
        format!(
            "JobId=3 JobName=a JobState={state} ExitCode={code} StartTime={start} EndTime=20 X=(null)"
        )
    };
    let ended = |ended_well, elapsed_s| Ok(Some(EndedJob { ended_well, elapsed_s }));
    assert_eq!(parse_ended(&text("COMPLETED", "0:0", "17")), ended(true, 3.0));
    assert_eq!(parse_ended(&text("FAILED", "3:0", "17")), ended(false, 3.0));
    assert_eq!(parse_ended(&text("CANCELLED", "0:0", "Unknown")), ended(false, 0.0));
    assert_eq!(parse_ended(&text("RUNNING", "0:0", "17")), Ok(None));
    assert_eq!(parse_ended("JobId=3"), Err("no field JobState".to_owned()));
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

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\\n|]{0,200}") {
        let (jobs, errors) = parse_jobs(&text);
        prop_assert!(jobs.len() + errors.len() <= text.lines().count());
        let _ = parse_nodes(&text);
        let _ = parse_ended(&text);
        if let Ok(all) = hosts(&text) {
            prop_assert!(all.len() <= MOST_HOSTS);
        }
    }
}
