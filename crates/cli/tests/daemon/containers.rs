//! Programs in containers: a cgroup that is called as a runtime calls it, and a state folder that this test wrote.

use std::fs;

use libtest_mimic::Trial;
use serde_json::json;

use crate::cgroup::Cgroup;
use crate::service::Service;
use crate::test_folder::{Program, stderr, wait_until};
use crate::trials::{BUSY, skip, trial};

const NAME: &str = "shop/web-0/nginx";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_program_in_a_container_is_named_by_it", named),
        trial("an_annotation_that_decides_is_named_in_the_log", annotated),
        trial("what_is_new_in_a_detached_container_is_not_managed", detached),
        trial("priorities_that_do_not_act_between_cgroups_are_not_tried", priorities),
    ]
}

/// A pod of one container with a process, and a daemon that reads its state.
struct Pod {
    service: Service,
    program: Program,
    scope: String,
    path: String,
    bundle: String,
    state: std::path::PathBuf,
    // The last to go.
    cgroup: Cgroup,
    _slice: Cgroup,
}

impl Pod {
    fn new(annotations: bool) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let service = Service::configured(|place| {
            let (state, metrics) = (place.path("containerd"), place.path("symbiont.prom"));
            format!(
                "policy = \"stay\"\nquantum = \"20ms\"\n[metrics]\nfile = \"{}\"\n\
                 [containers]\nmetrics = true\nannotations = {annotations}\n\
                 [containers.folders]\ncontainerd = [\"{}\"]\n",
                metrics.display(),
                state.display()
            )
        });
        let slice = format!("kubepods-burstable-pod{}.slice", service.id());
        let id = format!("{:064x}", service.id());
        let scope = format!("cri-containerd-{id}.scope");
        let below = Cgroup::new(&slice)?;
        let path = format!("{slice}/{scope}");
        let cgroup = Cgroup::new(&path)?;
        let program = service.place.start(std::process::Command::new("sh").args(["-c", BUSY]));
        if !cgroup.add(program.id()) {
            return None;
        }
        let state = service.place.path("containerd/io.containerd.runtime.v2.task/k8s.io").join(&id);
        fs::create_dir_all(&state).unwrap();
        let kind = |key: &str| format!("io.kubernetes.cri.{key}");
        let bundle = json!({ "linux": { "cgroupsPath": format!("/{path}") }, "annotations": {
            kind("sandbox-namespace"): "shop", kind("sandbox-name"): "web-0",
            kind("container-name"): "nginx", kind("image-name"): "nginx:1",
            "symbiont.dev/class": "batch",
        } });
        let bundle = bundle.to_string();
        let state = state.join("config.json");
        fs::write(&state, &bundle).unwrap();
        Some(Self { service, program, scope, path, bundle, state, cgroup, _slice: below })
    }

    /// Its container has this name from now on.
    fn rename(&self, name: &str) {
        fs::write(&self.state, self.bundle.replace("\"nginx\"", &format!("\"{name}\""))).unwrap();
    }

    fn said(&self, words: &[&str]) -> String {
        let done = self.service.client(words);
        assert!(done.status.success(), "{words:?}: {}", stderr(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Attaches, gives the name, and detaches.
    fn name_by(&self, option: &str, value: &str) -> String {
        let config = self.service.config().display().to_string();
        let words = [option, value, "--config", &config];
        self.said(&[&["attach"], &words[..]].concat());
        let name = self.service.programs()[0]["name"].as_str().unwrap().to_owned();
        self.said(&[&["detach"], &words[..]].concat());
        wait_until("none is managed", || self.service.programs().is_empty());
        name
    }
}

fn named() {
    let Some(pod) = Pod::new(false) else { return skip("no container can be imitated here") };
    let (service, id) = (&pod.service, pod.program.id().to_string());
    assert_eq!(pod.name_by("--pid", &id), "sh");
    for (option, value) in [
        ("--pod", "shop/web-*"),
        ("--container", "ngin?"),
        ("--unit", pod.scope.as_str()),
        ("--cgroup", pod.path.as_str()),
    ] {
        assert_eq!(pod.name_by(option, value), NAME, "{option}");
    }
    let config = service.config().display().to_string();
    let none = service.client(&["attach", "--pod", "other/*", "--config", &config]);
    assert!(stderr(&none).contains("no process of pod other/* is found here"), "{none:?}");

    pod.said(&["attach", "--pod", "shop/web-0", "--container", "nginx", "--config", &config]);
    let container = json!({
        "namespace": "shop", "pod": "web-0", "container": "nginx", "image": "nginx:1",
        "id": format!("{:064x}", service.id()), "runtime": "containerd", "qos": "burstable",
    });
    let mut shown = service.programs()[0]["container"].clone();
    let labels = shown.as_object_mut().unwrap().remove("labels").unwrap();
    assert_eq!(shown, container);
    assert_eq!(labels["symbiont.dev/class"], "batch");
    let words = format!("{NAME} (image nginx:1, containerd 000000000000, burstable)");
    let status = pod.said(&["status"]);
    assert!(status.contains(&format!("sh, in {words}")), "{status}");
    wait_until("the loop has seen it", || service.client(&["why", &id]).status.success());
    let why = pod.said(&["why", &id]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains(&format!("container {words}")), "{why}");
    let top = pod.said(&["top", "--once", "--interval", "200ms", "--fold", "pods"]);
    assert!(top.contains(" shop/web-0 "), "{top}");
    pod.rename("caddy");
    wait_until("it is called by its new name", || {
        service.programs()[0]["name"] == "shop/web-0/caddy"
    });
    let metrics = || fs::read_to_string(service.place.path("symbiont.prom")).unwrap_or_default();
    let series = "symbiont_pod_threads{namespace=\"shop\",pod=\"web-0\"} 1\n";
    wait_until("the pod has metrics", || metrics().contains(series));
    pod.program.kill_all();
    wait_until("they end with it", || !metrics().is_empty() && !metrics().contains("web-0"));
}

fn annotated() {
    let Some(pod) = Pod::new(true) else { return skip("no container can be imitated here") };
    wait_until("it is managed", || pod.service.programs().len() == 1);
    assert_eq!(pod.service.programs()[0]["class"], "batch");
    let log = pod.service.log();
    let line = format!("class batch, by annotations of {NAME}");
    assert!(log.contains(&line) && !log.contains("a rule"), "{log}");
    pod.program.kill_all();
}

/// A container whose processes come and go.
fn detached() {
    let Some(pod) = Pod::new(true) else { return skip("no container can be imitated here") };
    let service = &pod.service;
    wait_until("it is managed", || service.programs().len() == 1);
    let config = service.config().display().to_string();
    pod.said(&["detach", "--pod", "shop/web-0", "--config", &config]);
    let new = service.place.start(std::process::Command::new("sh").args(["-c", BUSY]));
    assert!(pod.cgroup.add(new.id()));
    let seconds = format!("{}.25", service.id());
    let rule = format!("[[rule]]\ncommand = \"sleep {seconds}\"\nmanage = true\n");
    fs::write(service.place.path("rules.d/50-test.toml"), rule).unwrap();
    let elsewhere = service.place.start(std::process::Command::new("sleep").arg(&seconds));
    pod.said(&["reload"]);
    wait_until("what came later elsewhere is managed", || !service.programs().is_empty());
    let programs = service.programs();
    assert_eq!((programs.len(), &programs[0]["name"]), (1, &"sleep".into()), "{}", service.log());
    for program in [new, elsewhere] {
        program.kill_all();
    }
    pod.program.kill_all();
}

/// Two serial programs, each in a cgroup that the CPU controller weighs, under a policy that raises their priority.
fn priorities() {
    let service = Service::start("phases");
    let cgroups = ["a", "b"].map(|name| {
        let name = format!("symbiont-weighed-{}-{name}", service.id());
        Cgroup::in_one_of(&["cpu", "cpu,cpuacct", ""], &name)
    });
    let [Some(first), Some(second)] = &cgroups else { return skip("no cgroup can be made here") };
    let programs = [first, second].map(|cgroup| {
        let program = service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY]));
        (cgroup.add(program.id()), program)
    });
    if !programs.iter().all(|(is_moved, _)| *is_moved) {
        return skip("no process can be moved to a cgroup here");
    }
    wait_until("both are managed", || service.programs().len() == 2);
    let withheld = || {
        let reasons = service.status()["reasons"]["withheld"]["this machine cannot do it"].as_u64();
        reasons.unwrap_or(0)
    };
    // Without privileges they would be withheld, too.
    wait_until("priorities are wanted", || withheld() > 20);
    let log = service.log();
    assert_eq!(log.matches("their priorities do not change").count(), 1, "{log}");
    if !log.contains("are in different scheduling groups") {
        skip("cgroups are not weighed here");
    }
    let status = service.client(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        status.contains("note: threads are placed, but their priorities do not change"),
        "{status}"
    );
    // One may have been raised before it was moved to its cgroup.
    let refused = log.matches("a move was refused").count();
    assert!(refused <= 1, "{refused} times: {log}");
    let status = service.status();
    let refused = status["moves"]["refused"].as_u64().unwrap();
    assert!(refused <= 2, "{refused} moves: {log}");
    for (_, program) in programs {
        program.kill_all();
    }
}
