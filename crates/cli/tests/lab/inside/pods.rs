//! Pods: cgroups as kubelet and containerd make them, with the files in which containerd keeps their names.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::cgroup::Group;
use super::classes::{mask, masks};
use super::daemon::{Daemon, has_own_masks};
use super::siblings::{LASTS, wait_until_seen, workers};
use crate::given::Given;
use crate::test_folder::{Program, TestFolder, is_alive, wait_until};

/// Controllers of pods' groups, as kubelet has them.
const CONTROLLERS: [&str; 3] = ["cpuset", "cpu", "memory"];
/// Below a place.
const STATE: &str = "containerd";

/// What the state of a container says.
#[derive(Clone, Copy)]
pub struct Spec {
    pub pod: &'static str,
    pub container: &'static str,
    pub image: &'static str,
    /// More annotations, as `KEY=VALUE`.
    pub asks: Option<(&'static str, &'static str)>,
}

impl Spec {
    pub const fn of(pod: &'static str) -> Self {
        Self { pod, container: "main", image: "main:1", asks: None }
    }

    fn name(&self) -> String {
        format!("shop/{}/{}", self.pod, self.container)
    }

    /// As the container's state has them.
    fn annotations(&self) -> BTreeMap<String, &'static str> {
        let kind = |key: &str| format!("io.kubernetes.cri.{key}");
        let mut annotations = BTreeMap::from([
            (kind("sandbox-namespace"), "shop"),
            (kind("sandbox-name"), self.pod),
            (kind("container-name"), self.container),
            (kind("image-name"), self.image),
        ]);
        annotations.extend(self.asks.map(|(key, value)| (key.to_owned(), value)));
        annotations
    }
}

/// A container with what runs in it.
pub struct Container {
    pub group: Group,
    pub program: Program,
    id: String,
}

/// A daemon that may read the state of containers, and the containers of its guest.
pub struct Node {
    pub daemon: Daemon,
    made: Cell<u64>,
}

impl Node {
    pub fn start(settings: &str, rules: &str) -> Self {
        let config = |place: &TestFolder| {
            let state = place.path(STATE);
            format!(
                "{settings}[containers]\nannotations = true\n[containers.folders]\ncontainerd = [{state:?}]\n"
            )
        };
        Self { daemon: Daemon::ruled(rules, config), made: Cell::new(0) }
    }

    /// Starts a container as containerd does: its state is there before its process is, which is born in its group.
    pub fn run(&self, spec: &Spec, words: &[&str]) -> Container {
        self.made.set(self.made.get() + 1);
        let number = self.made.get();
        let id = format!("{number:064x}");
        let slice = format!("kubepods-burstable-pod{number}.slice");
        let scope = format!("cri-containerd-{id}.scope");
        let path = format!("kubepods.slice/kubepods-burstable.slice/{slice}/{scope}");
        let annotations = spec.annotations();
        let asked = format!("{slice}:cri-containerd:{id}");
        let bundle = json!({"annotations": annotations, "linux": {"cgroupsPath": asked}});
        let tasks = self.daemon.place.path(STATE).join("io.containerd.runtime.v2.task/k8s.io");
        fs::create_dir_all(tasks.join(&id)).unwrap();
        fs::write(tasks.join(&id).join("config.json"), bundle.to_string()).unwrap();
        let group = Group::at(&path, &CONTROLLERS);
        let own = std::process::id();
        group.take(own);
        let program = self.daemon.unmanaged(words);
        Group::root().take(own);
        Container { group, program, id }
    }

    /// The managed programs by their names.
    pub fn programs(&self) -> BTreeMap<String, Value> {
        let status = self.daemon.status();
        let programs = status["programs"].as_array().unwrap().iter();
        programs.map(|of| (of["name"].as_str().unwrap().to_owned(), of.clone())).collect()
    }
}

const RULES: &str = r#"
[[rule]]
pod = "shop/web-*"
class = "latency"
[[rule]]
container = "postgres"
class = "batch"
[[rule]]
image = "example.org/*/reports:*"
class = "batch"
[[rule]]
label = { tier = "back" }
manage = true
"#;

/// What each kind of rule matches is managed in its class, and named; what none matches is not managed.
pub fn matched(_: &Given) {
    let mut node = Node::start("policy = \"random\"\nquantum = \"100ms\"\n", RULES);
    let specs = [
        (Spec::of("web-0"), Some("latency")),
        (Spec { container: "postgres", ..Spec::of("data-0") }, Some("batch")),
        (Spec { image: "example.org/a/reports:7", ..Spec::of("nightly") }, Some("batch")),
        (Spec { asks: Some(("tier", "back")), ..Spec::of("back") }, Some("normal")),
        (Spec { asks: Some(("symbiont.dev/class", "batch")), ..Spec::of("asks") }, Some("batch")),
        (Spec { asks: Some(("tier", "front")), ..Spec::of("other") }, None),
    ];
    let containers = specs
        .map(|(spec, class)| (spec, class, node.run(&spec, &["group", "all", "2", "sleeper"])));
    wait_until("the rules have what they name managed", || node.programs().len() >= 5);
    let programs = node.programs();
    for (spec, class, container) in &containers {
        let program = programs.get(&spec.name());
        let Some(class) = class else {
            assert!(program.is_none(), "{program:?}");
            has_own_masks(&container.program);
            continue;
        };
        let program = program.unwrap_or_else(|| panic!("{} in {programs:?}", spec.name()));
        let named = json!({
            "namespace": "shop", "pod": spec.pod, "container": spec.container, "image": spec.image,
            "id": container.id, "runtime": "containerd", "qos": "burstable",
            "labels": spec.annotations(),
        });
        assert_eq!((&program["class"], &program["container"]), (&json!(class), &named));
        assert_eq!(workers(&container.program, "sleeper").len(), 2, "all run on");
    }
    println!("{}", node.daemon.log());
    node.daemon.end();
    containers.iter().for_each(|(_, _, container)| has_own_masks(&container.program));
}

const CLASSES: &str = r#"
[[rule]]
pod = "shop/web-*"
class = "latency"
[[rule]]
label = { tier = "back" }
class = "batch"
"#;
/// How often it is looked once a core is kept, and how long after each look.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// A pod of class latency has a core, which no thread of batch pods may use, of one that comes later neither; once it
/// has ended, they may.
pub fn latency(given: &Given) {
    let mut node = Node::start("policy = \"auto\"\nquantum = \"200ms\"\n", CLASSES);
    let each = (given.cpus().len() / 4).to_string();
    let words = ["group", "all", &each, "dozer"];
    let batch = |pod| node.run(&Spec { asks: Some(("tier", "back")), ..Spec::of(pod) }, &words);
    let mut others = vec![batch("back-0"), batch("back-1")];
    let web = node.run(&Spec::of("web-0"), &["group", "all", "1", "modest"]);
    let of_others = |others: &[Container]| -> Vec<_> {
        others.iter().flat_map(|other| masks(&other.program)).collect()
    };
    let reach = |others: &[Container], core: &[u32]| {
        of_others(others).iter().any(|mask| core.iter().any(|cpu| mask.contains(cpu)))
    };
    let core = || {
        let mask = mask(&web.program);
        given.cores.iter().find(|core| core.iter().copied().eq(mask.iter().copied())).cloned()
    };
    let mut right = 0;
    wait_until_seen("the pod has a core for itself", |seen| {
        *seen = format!("it {:?}, others {:?}", mask(&web.program), of_others(&others));
        let alone = core().is_some_and(|core| !reach(&others, &core));
        right = if alone { right + 1 } else { 0 };
        right >= LASTS
    });
    let kept = core().expect("a core");
    let look = |others: &[Container]| {
        for _ in 0..LOOKS {
            assert_eq!(core().as_ref(), Some(&kept), "it keeps its core");
            assert!(!reach(others, &kept), "others on {kept:?}: {:?}", of_others(others));
            std::thread::sleep(PAUSE);
        }
    };
    look(&others);
    let young = batch("back-2");
    wait_until_seen("a newcomer is kept off", |seen| {
        let masks = masks(&young.program);
        *seen = format!("{masks:?} for {kept:?}");
        let off = |cpu: &u32| masks.iter().all(|mask| !mask.contains(cpu));
        masks.len() > workers(&young.program, "dozer").len() && kept.iter().all(off)
    });
    others.push(young);
    look(&others);
    assert!(is_alive(web.program.id()), "it runs on");
    web.program.kill_all();
    wait_until_seen("its core is used by the others again", |seen| {
        *seen = format!("{:?}", of_others(&others));
        kept.iter().all(|cpu| reach(&others, &[*cpu]))
    });
    node.daemon.end();
    others.iter().for_each(|other| has_own_masks(&other.program));
}
