//! State of each runtime, written after what the tools themselves write, gives names; and is read once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod common;

use std::time::Duration;
use std::{fs, io};

use common::{Host, ID, OTHER, POD, folders_below, is_root, own_uid, root};
use serde_json::json;
use symbiont_containers::{Identity, Owner, Qos, Runtime};

const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task";
const SLICE: &str = "kubepods-burstable-podabc.slice";
const IN_POD: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podabc.slice";

fn names(identity: &Identity) -> (&str, &str) {
    let (container, image) = (identity.container.as_deref(), identity.image.as_deref());
    (container.unwrap_or_default(), image.unwrap_or_default())
}

fn cri_of_containerd(host: &Host, root: &str) {
    let path = format!("{root}/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json");
    let annotations = json!({
        "io.kubernetes.cri.container-type": "container", "io.kubernetes.cri.sandbox-id": POD,
        "io.kubernetes.cri.sandbox-name": "web-0", "io.kubernetes.cri.sandbox-namespace": "shop",
        "io.kubernetes.cri.container-name": "nginx", "io.kubernetes.cri.image-name": "nginx:1",
    });
    host.bundle(&path, &format!("{SLICE}:cri-containerd:{ID}"), &annotations);
    let path = format!("{root}/io.containerd.runtime.v2.task/k8s.io/{POD}/config.json");
    let annotations = json!({
        "io.kubernetes.cri.container-type": "sandbox", "io.kubernetes.cri.sandbox-id": POD,
        "io.kubernetes.cri.sandbox-name": "web-0", "symbiont.dev/class": "latency",
    });
    host.bundle(&path, &format!("{SLICE}:cri-containerd:{POD}"), &annotations);
}

#[test]
fn pods_of_containerd_have_names_and_what_their_sandbox_says() {
    for state in ["/run/containerd", "/run/k3s/containerd"] {
        let mut host = Host::new();
        cri_of_containerd(&host, state);
        let of = host.identify(&format!("{IN_POD}/cri-containerd-{ID}.scope"), &root());
        let of = of.unwrap();
        assert_eq!(of.display(), "shop/web-0/nginx");
        assert_eq!(
            (of.runtime, of.qos, names(&of).1),
            (Runtime::Containerd, Some(Qos::Burstable), "nginx:1")
        );
        assert_eq!((of.pod_uid.as_deref(), of.stated_by), (Some("abc"), Some(own_uid())));
        assert_eq!(
            of.annotation("symbiont.dev/class"),
            Some("latency"),
            "the pod's counts for the container"
        );
        assert_eq!(host.notes(), [""; 0]);
    }
}

#[test]
fn clients_of_containerd_have_labels() {
    let mut host = Host::new();
    host.bundle(
        &format!("{TASKS}/default/web/config.json"),
        "/default/web",
        &json!({"app": "web"}),
    );
    let of = host.identify("/default/web", &root()).unwrap();
    assert_eq!(
        (of.label("app"), of.id.as_str(), of.display()),
        (Some("web"), "web", "oci/web".to_owned())
    );
    assert!(host.identify("/default/other", &root()).is_none(), "no container");
    assert_eq!(host.notes(), [""; 0], "of what may be no container there is nothing to note");
}

#[test]
fn pods_of_crio_have_labels() {
    let mut host = Host::new();
    let path = format!("/run/containers/storage/overlay-containers/{ID}/userdata/config.json");
    let labels = json!({
        "io.kubernetes.pod.name": "web-0", "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.container.name": "nginx", "app": "web",
    });
    let annotations = json!({
        "io.kubernetes.cri-o.ContainerType": "container", "io.kubernetes.cri-o.SandboxID": POD,
        "io.kubernetes.cri-o.ImageName": "nginx:1", "io.kubernetes.cri-o.Labels": labels.to_string(),
        "io.kubernetes.cri-o.Annotations": json!({"symbiont.dev/class": "batch"}).to_string(),
    });
    host.bundle(&path, &format!("{SLICE}:crio:{ID}"), &annotations);
    let of = host.identify(&format!("{IN_POD}/crio-{ID}.scope"), &root()).unwrap();
    assert_eq!(of.display(), "shop/web-0/nginx");
    assert_eq!(
        (of.label("app"), of.annotation("symbiont.dev/class")),
        (Some("web"), Some("batch"))
    );
}

#[test]
fn docker_has_names_and_labels() {
    let mut host = Host::new();
    let config =
        json!({"ID": ID, "Name": "/dweb", "Config": {"Image": "busy:1", "Labels": {"app": "web"}}});
    host.write(&format!("/var/lib/docker/containers/{ID}/config.v2.json"), &config.to_string());
    host.bundle(&format!("{TASKS}/moby/{ID}/config.json"), &format!("/docker/{ID}"), &json!(null));
    let of = host.identify(&format!("/docker/{ID}/inner"), &root()).unwrap();
    assert_eq!((names(&of), of.label("app")), (("dweb", "busy:1"), Some("web")));
    assert_eq!(of.cgroup, format!("/docker/{ID}"), "its own, whichever cgroup the process is in");
    // Without the bundle the cgroup is recorded nowhere: what docker itself made counts.
    fs::remove_dir_all(host.path(TASKS)).unwrap();
    host.now += Duration::from_secs(2);
    let of = host.identify(&format!("/docker/{ID}"), &root()).unwrap();
    assert_eq!(of.display(), "dweb");
}

fn podman(host: &Host, storage: &str, driver: &str, cgroup: &str) {
    let path = format!("{storage}/{driver}-containers/{ID}/userdata/config.json");
    let annotations = json!({
        "io.container.manager": "libpod", "io.kubernetes.cri-o.SandboxID": POD,
        "io.kubernetes.cri-o.ContainerType": "container", "symbiont.dev/class": "batch",
    });
    host.bundle(&path, cgroup, &annotations);
    let metadata = json!({"image-name": "busy:1", "name": "web"}).to_string();
    let list = json!([{"id": ID, "names": ["web"], "metadata": metadata}]);
    host.write(&format!("{storage}/{driver}-containers/containers.json"), &list.to_string());
}

#[test]
fn podman_has_names_from_its_list() {
    let mut host = Host::new();
    podman(&host, "/var/lib/containers/storage", "overlay", &format!("machine.slice:libpod:{ID}"));
    let cgroup = format!("/machine.slice/libpod-{ID}.scope/container");
    let of = host.identify(&cgroup, &root()).unwrap();
    assert_eq!((names(&of), of.podman_pod.as_deref()), (("web", "busy:1"), Some(POD)));
    assert_eq!(of.annotation("symbiont.dev/class"), Some("batch"));
}

#[test]
fn a_renamed_container_has_its_new_name() {
    let mut host = Host::new();
    let storage = "/var/lib/containers/storage/overlay-containers";
    for id in [ID, OTHER] {
        let path = format!("{storage}/{id}/userdata/config.json");
        host.bundle(&path, &format!("machine.slice:libpod:{id}"), &json!({}));
    }
    let list = |host: &Host, names: [&str; 2]| {
        let each = [ID, OTHER].into_iter().zip(names);
        let each = each.map(|(id, name)| json!({"id": id, "names": [name], "metadata": "{}"}));
        let list: Vec<_> = each.collect();
        host.write(&format!("{storage}/containers.json"), &json!(list).to_string());
    };
    let named = |host: &mut Host| {
        host.now += Duration::from_secs(2);
        [ID, OTHER].map(|id| {
            let cgroup = format!("/machine.slice/libpod-{id}.scope");
            host.identify(&cgroup, &root()).unwrap().display()
        })
    };
    list(&host, ["web", "base"]);
    assert_eq!(named(&mut host), ["web", "base"]);
    // As podman does it: nothing but the list changes.
    list(&host, ["front", "base"]);
    let opened = host.containers.opened();
    assert_eq!(named(&mut host), ["front", "base"]);
    assert_eq!(host.containers.opened() - opened, 2, "the list, and the state of one");
    assert_eq!(named(&mut host), ["front", "base"]);
    assert_eq!(host.containers.opened() - opened, 2);
}

/// As this user, or as another one where this is root: files are given to it.
fn give(host: &Host, uid: u32) -> io::Result<()> {
    let mut folders = vec![host.folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)?.flatten() {
            std::os::unix::fs::lchown(entry.path(), Some(uid), Some(uid))?;
            folders.extend(entry.file_type()?.is_dir().then(|| entry.path()));
        }
    }
    Ok(())
}

#[test]
fn a_users_state_counts_for_the_users_processes_alone() {
    if !is_root() {
        return; // another user's files can be made by root only
    }
    let mut host = Host::new();
    podman(
        &host,
        "/home/ann/.local/share/containers/storage",
        "vfs",
        &format!("user.slice:libpod:{ID}"),
    );
    give(&host, 4242).unwrap();
    let cgroup =
        format!("/user.slice/user-4242.slice/user@4242.service/user.slice/libpod-{ID}.scope");
    let ann = Owner { uid: 4242, home: Some("/home/ann".into()) };
    let of = host.identify(&cgroup, &ann).unwrap();
    assert_eq!((of.display(), of.stated_by), ("web".to_owned(), Some(4242)));
    for other in [
        root(),
        Owner { uid: 4243, home: None },
        Owner { uid: 4243, home: Some("/home/ann".into()) },
    ] {
        let of = host.identify(&cgroup, &other).unwrap();
        assert_eq!((of.container.as_deref(), of.stated_by), (None, None), "{other:?}");
    }
}

#[test]
fn runc_and_crun_have_annotations() {
    let mut host = Host::new();
    let state = json!({
        "config": {"labels": ["io.kubernetes.cri.container-name=nginx", "app=web", "bundle=/b"]},
        "cgroup_paths": {"cpu": "/sys/fs/cgroup/cpu/trial", "memory": "/sys/fs/cgroup/memory/caller/trial"},
    });
    host.write("/run/runc/trial/state.json", &state.to_string());
    host.bundle("/run/crun/second/config.json", "", &json!({"app": "two"}));
    let status = json!({"pid": 7, "cgroup-path": "/second", "bundle": "/b"});
    host.write("/run/crun/second/status", &status.to_string());
    let lines = "4:memory:/caller/trial\n1:cpu:/trial\n0::/\n";
    let of = host.containers.identify(lines, &root(), host.now).unwrap();
    assert_eq!(
        (of.display(), of.label("app"), of.cgroup.as_str()),
        ("nginx".to_owned(), Some("web"), "/trial")
    );
    assert_eq!(host.identify("/second/below", &root()).unwrap().label("app"), Some("two"));
}

#[test]
fn machines_and_steps_need_no_state() {
    let mut host = Host::new();
    let machine = host.identify("/machine.slice/machine-web.scope/payload", &root()).unwrap();
    assert_eq!((machine.runtime, machine.display()), (Runtime::Nspawn, "web".to_owned()));
    let step = host.identify("/slurm/uid_1/job_7/step_0/task_1", &root()).unwrap();
    assert_eq!(
        (step.display(), step.step.as_ref().map(|step| step.job)),
        ("slurm/7.0".to_owned(), Some(7))
    );
    assert_eq!(host.notes(), [""; 0]);
}

#[test]
fn the_innermost_container_that_can_be_read_counts() {
    let mut host = Host::new();
    let config = json!({"Name": "/kind", "Config": {"Labels": {}}});
    host.write(&format!("/var/lib/docker/containers/{OTHER}/config.v2.json"), &config.to_string());
    let inner = format!("/docker/{OTHER}{IN_POD}/cri-containerd-{ID}.scope");
    let of = host.identify(&inner, &root()).unwrap();
    assert_eq!(
        (of.display(), of.outer.as_deref()),
        ("kind".to_owned(), None),
        "the inner state is in the container"
    );
    host.bundle(
        &format!("{TASKS}/k8s.io/{ID}/config.json"),
        &inner,
        &json!({
            "io.kubernetes.cri.container-name": "nginx",
        }),
    );
    host.now += Duration::from_secs(2);
    host.containers = symbiont_containers::Containers::new(folders_below(host.folder.path()));
    let of = host.identify(&inner, &root()).unwrap();
    assert_eq!((of.display(), of.outer.as_deref()), ("nginx".to_owned(), Some("kind")));
}

#[test]
fn thousands_of_cgroups_cost_each_file_once() {
    let mut host = Host::new();
    let mut lines = Vec::new();
    for pod in 0..500 {
        let slice = format!("kubepods-pod{pod}.slice");
        let id = format!("{pod:064x}");
        let name = format!("p{pod}");
        let annotations = json!({"io.kubernetes.cri.sandbox-name": name, "io.kubernetes.cri.container-name": "c"});
        host.bundle(
            &format!("{TASKS}/k8s.io/{id}/config.json"),
            &format!("{slice}:cri-containerd:{id}"),
            &annotations,
        );
        // Cgroups below the container's own are other cgroups.
        lines.extend((0..10).map(|below| {
            format!("0::/kubepods.slice/{slice}/cri-containerd-{id}.scope/{below}\n")
        }));
    }
    let ask = |host: &mut Host| {
        for line in &lines {
            let of = host.containers.identify(line, &root(), host.now).unwrap();
            assert!(of.pod.is_some());
        }
    };
    ask(&mut host);
    let opened = host.containers.opened();
    assert!(opened <= 5000, "{opened}");
    for _ in 0..3 {
        host.now += Duration::from_secs(2);
        ask(&mut host);
    }
    assert_eq!(host.containers.opened(), opened, "unchanged files are not opened again");
    assert_eq!(host.containers.len(), 5000);
}

#[test]
fn a_changed_file_is_read_again() {
    let mut host = Host::new();
    let path = format!("{TASKS}/k8s.io/{ID}/config.json");
    let cgroup = format!("{IN_POD}/cri-containerd-{ID}.scope");
    let write = |host: &Host, name: &str| {
        let file = host.path(&path);
        if file.exists() {
            fs::remove_file(&file).unwrap();
        }
        host.bundle(
            &path,
            &format!("{SLICE}:cri-containerd:{ID}"),
            &json!({"io.kubernetes.cri.container-name": name}),
        );
    };
    write(&host, "one");
    assert_eq!(host.identify(&cgroup, &root()).unwrap().display(), "one");
    write(&host, "second");
    assert_eq!(
        host.identify(&cgroup, &root()).unwrap().display(),
        "one",
        "looked at once a second"
    );
    host.now += Duration::from_secs(2);
    assert_eq!(host.identify(&cgroup, &root()).unwrap().display(), "second");
    fs::create_dir_all(host.path(&format!("/sys/fs/cgroup/{cgroup}"))).unwrap();
    host.containers.sweep(host.now);
    assert_eq!(host.containers.len(), 1);
    fs::remove_dir_all(host.path("/sys/fs/cgroup")).unwrap();
    host.now += Duration::from_secs(60);
    host.containers.sweep(host.now);
    assert!(host.containers.is_empty(), "its cgroup is gone");
}
