//! Metrics of a daemon with real programs, read as Prometheus reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use libtest_mimic::Trial;

use crate::exposition::{self, Metric, fallen, parse};
use crate::service::Service;
use crate::test_folder::{Program, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("metrics_count_what_the_daemon_does_and_never_fall", counted),
        trial("the_reader_of_metrics_refuses_what_breaks_a_rule", refuse),
        trial("trouble_with_metrics_is_a_note_and_no_more", trouble),
        trial("metrics_are_served_on_loopback_addresses_only", loopback),
        trial("a_reload_moves_and_ends_metrics", reloaded),
    ]
}

type Metrics = BTreeMap<String, Metric>;

fn refuse() {
    exposition::refuses_what_breaks_a_rule();
}

/// A port that is free now.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn served(address: SocketAddr) -> Option<String> {
    let mut client = TcpStream::connect(address).ok()?;
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    (!body.is_empty()).then(|| body.to_owned())
}

/// The sum over all series of a metric.
fn total(metrics: &Metrics, name: &str) -> f64 {
    metrics.get(name).unwrap_or_else(|| panic!("{name}")).samples.values().sum()
}

fn counted() {
    let address = free();
    let service = Service::configured(|place| {
        let file = place.path("symbiont.prom");
        let metrics = format!("[metrics]\nfile = {file:?}\nlisten = \"{address}\"\n");
        format!("policy = \"random\"\nquantum = \"20ms\"\n{metrics}")
    });
    let file = service.place.path("symbiont.prom");
    let read = || fs::read_to_string(&file).ok();
    wait_until("the file is there", || read().is_some());
    let before = parse(&read().unwrap()).unwrap();
    let programs: Vec<Program> = (0..3)
        .map(|_| service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY])))
        .collect();
    let mut last = before.clone();
    wait_until("all programs are counted", || {
        let now = parse(&read().unwrap()).unwrap();
        assert_eq!(fallen(&last, &now), [], "a counter never falls");
        last = now;
        total(&last, "symbiont_programs") >= 3.0 && total(&last, "symbiont_threads") >= 3.0
    });
    if own_cpus().len() > 1 {
        wait_until("moves are counted", || {
            let now = parse(&read().unwrap()).unwrap();
            total(&now, "symbiont_moves_total") > 0.0
                && total(&now, "symbiont_threads_placed") > 0.0
        });
    }
    let over_http = parse(&served(address).unwrap()).unwrap();
    assert_eq!(over_http.keys().collect::<Vec<_>>(), last.keys().collect::<Vec<_>>());
    assert_eq!(fallen(&last, &over_http), []);
    plausible(&service, &over_http);
    programs.iter().for_each(Program::kill_all);
    wait_until("ended programs are not counted", || {
        total(&parse(&read().unwrap()).unwrap(), "symbiont_programs") == 0.0
    });
}

/// What is published agrees with `status`, and names no thread, process or program.
fn plausible(service: &Service, metrics: &Metrics) {
    let status = service.status();
    let usage = &status["usage"];
    for (name, most) in [
        ("symbiont_quanta_total", usage["quanta"].as_f64()),
        ("symbiont_cpu_seconds_total", usage["cpu_s"].as_f64()),
    ] {
        let value = total(metrics, name);
        assert!(value > 0.0 && value <= most.unwrap(), "{name}: {value} {most:?}");
    }
    assert_eq!(total(metrics, "symbiont_quantum_seconds"), 0.02);
    assert_eq!(
        total(metrics, "symbiont_hardware_threads"),
        status["hardware_threads"].as_f64().unwrap()
    );
    assert!(total(metrics, "symbiont_resident_memory_bytes") > 1e6);
    assert!(total(metrics, "symbiont_open_descriptors") > 3.0);
    let series = metrics.values().flat_map(|metric| metric.samples.keys());
    for label in series.flat_map(|(_, labels)| labels.keys()) {
        assert!(["policy", "outcome", "version", "le"].contains(&label.as_str()), "{label}");
    }
    assert!(metrics.keys().all(|name| name.starts_with("symbiont_")));
}

fn trouble() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let service = Service::configured(|place| {
        let file = place.path("missing/symbiont.prom");
        format!("policy = \"stay\"\n[metrics]\nfile = {file:?}\nlisten = \"{address}\"\n")
    });
    let noted = |what: &str| {
        let status = service.status();
        let notes = status["notes"].as_array().unwrap().clone();
        notes.iter().any(|note| note.as_str().unwrap().contains(what))
    };
    wait_until("the port is noted", || noted(&address.to_string()));
    wait_until("the file is noted", || noted("missing/symbiont.prom"));
    let program = service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY]));
    wait_until("it manages", || service.programs().len() == 1);
    program.kill_all();
    fs::create_dir(service.place.path("missing")).unwrap();
    wait_until("the file is written", || service.place.path("missing/symbiont.prom").exists());
    wait_until("it is noted no longer", || !noted("missing/symbiont.prom"));
    let lines = |part: &str| {
        let path = service.place.path("missing/symbiont.prom");
        let line = format!("{part}metrics are not written to {}", path.display());
        service.log().lines().filter(|one| one.contains(&line)).count()
    };
    wait_until("the log says that it is over", || lines("symbiontd: over: ") == 1);
    assert_eq!(lines("symbiontd: "), 1, "once: {}", service.log());
}

fn loopback() {
    let service = Service::start("stay");
    for address in ["0.0.0.0:9920", "[::]:9920", "192.0.2.1:9920"] {
        let text = format!("policy = \"stay\"\n[metrics]\nlisten = \"{address}\"\n");
        fs::write(service.config(), text).unwrap();
        let refused = service.client(&["reload"]);
        assert!(!refused.status.success());
        assert!(stderr(&refused).contains("loopback addresses only"), "{}", stderr(&refused));
    }
}

fn reloaded() {
    let mut service = Service::start("stay");
    let files = ["first.prom", "second.prom"].map(|name| service.place.path(name));
    let reload = |metrics: &str| {
        fs::write(service.config(), format!("policy = \"stay\"\n{metrics}")).unwrap();
        let done = service.client(&["reload"]);
        assert!(done.status.success(), "{}", stderr(&done));
    };
    for file in &files {
        reload(&format!("[metrics]\nfile = {file:?}\n"));
        wait_until("it is written", || file.exists());
    }
    assert!(!files[0].exists(), "a file that is no longer written is removed");
    reload("");
    assert!(!files[1].exists());
    reload(&format!("[metrics]\nfile = {:?}\n", files[0]));
    wait_until("it is written", || files[0].exists());
    service.end();
    assert!(!files[0].exists(), "what it says holds no longer");
}
