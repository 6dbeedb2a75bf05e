#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use proptest::prelude::*;

use super::*;
use crate::kube::Qos;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
const CLASS: &str = "/kubepods.slice/kubepods-burstable.slice";
const UID: &str = "6f2a9f0e-2c1b-4c39-9a8e-0d2f7c1b5a64";

fn only(path: &str) -> ContainerRef {
    let found = parse(path);
    let [one] = &found[..] else { panic!("one container in {path}: {found:?}") };
    one.clone()
}

#[test]
fn every_spelling_is_read() {
    let dashed = UID.replace('-', "_");
    for (path, runtime, qos) in [
        (
            format!("{CLASS}/kubepods-burstable-pod{dashed}.slice/cri-containerd-{ID}.scope"),
            Runtime::Containerd,
            Some(Qos::Burstable),
        ),
        (
            format!(
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{dashed}.slice/crio-{ID}.scope"
            ),
            Runtime::Crio,
            Some(Qos::BestEffort),
        ),
        (
            format!("/kubepods.slice/kubepods-pod{dashed}.slice/crio-{ID}.scope/container"),
            Runtime::Crio,
            Some(Qos::Guaranteed),
        ),
        (
            format!(
                "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{dashed}.slice/cri-containerd-{ID}.scope"
            ),
            Runtime::Containerd,
            Some(Qos::Guaranteed),
        ),
        (format!("/kubepods/besteffort/pod{UID}/{ID}"), Runtime::Cri, Some(Qos::BestEffort)),
        (format!("/kubepods/burstable/pod{UID}/{ID}/inner"), Runtime::Cri, Some(Qos::Burstable)),
        (format!("/kubelet/kubepods/pod{UID}/{ID}"), Runtime::Cri, Some(Qos::Guaranteed)),
        (format!("/kubepods/pod{UID}/crio-{ID}"), Runtime::Crio, Some(Qos::Guaranteed)),
        (
            format!(
                "/system.slice/containerd.service/kubepods-burstable-pod{dashed}.slice:cri-containerd:{ID}"
            ),
            Runtime::Containerd,
            Some(Qos::Burstable),
        ),
        (format!("/../../kubepods/burstable/pod{UID}/{ID}"), Runtime::Cri, Some(Qos::Burstable)),
        (format!("/system.slice/docker-{ID}.scope"), Runtime::Docker, None),
        (format!("/docker/{ID}"), Runtime::Docker, None),
        (format!("/machine.slice/libpod-{ID}.scope"), Runtime::Podman, None),
        (format!("/machine.slice/libpod-{ID}.scope/container"), Runtime::Podman, None),
        (format!("/libpod_parent/libpod-{ID}"), Runtime::Podman, None),
        (
            format!("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"),
            Runtime::Podman,
            None,
        ),
    ] {
        let found = only(&path);
        assert_eq!((found.runtime, found.id.as_str()), (runtime, ID), "{path}");
        let pod = found.pod.map(|pod| (pod.uid, pod.qos));
        assert_eq!(pod, qos.map(|qos| (UID.to_owned(), qos)), "{path}");
        assert!(path.starts_with(&found.cgroup) && found.cgroup.contains(ID), "{path}");
    }
}

#[test]
fn pods_of_podman_are_read() {
    for path in [
        format!("/machine.slice/machine-libpod_pod_{OTHER}.slice/libpod-{ID}.scope/container"),
        format!("/libpod_parent/libpod_pod_{OTHER}/libpod-{ID}"),
    ] {
        let found = only(&path);
        assert_eq!((found.id.as_str(), found.podman_pod.as_deref()), (ID, Some(OTHER)));
    }
}

#[test]
fn machines_are_read() {
    for (path, name) in [
        ("/machine.slice/machine-web.scope/payload", "web"),
        (r"/machine.slice/machine-web\x2d1.scope", "web-1"),
        ("/machine.slice/systemd-nspawn@web.service/payload/system.slice/cron.service", "web"),
    ] {
        let found = only(path);
        assert_eq!((found.runtime, found.id.as_str()), (Runtime::Nspawn, name), "{path}");
    }
    for bad in [
        r"/machine-a\x2fb.scope",
        r"/machine-\x2e\x2e.scope",
        r"/machine-\xzz.scope",
        r"/machine-\x1.scope",
    ] {
        assert_eq!(parse(bad), [], "{bad}");
    }
}

#[test]
fn steps_of_slurm_are_read() {
    for (path, name, task, uid, own) in [
        (
            "/slurm/uid_1000/job_7/step_0/task_3",
            "7.0",
            Some(3),
            Some(1000),
            "/slurm/uid_1000/job_7/step_0",
        ),
        (
            "/slurm_node1/uid_1/job_7/step_batch",
            "7.batch",
            None,
            Some(1),
            "/slurm_node1/uid_1/job_7/step_batch",
        ),
        (
            "/system.slice/slurmstepd.scope/job_7/step_extern/user/task_0",
            "7.extern",
            Some(0),
            None,
            "/system.slice/slurmstepd.scope/job_7/step_extern",
        ),
    ] {
        let found = only(path);
        assert_eq!(
            (found.runtime, found.id.as_str(), found.cgroup.as_str()),
            (Runtime::Slurm, name, own)
        );
        let step = found.step.unwrap();
        assert_eq!((step.job, step.task, step.uid), (7, task, uid));
    }
    assert_eq!(parse("/mine/job_7/step_0/task_0"), []);
}

#[test]
fn a_container_in_a_container_comes_after_it() {
    let path = format!(
        "/docker/{OTHER}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podX.slice/cri-containerd-{ID}.scope"
    );
    let ids: Vec<_> = parse(&path).into_iter().map(|found| (found.runtime, found.id)).collect();
    assert_eq!(ids, [(Runtime::Docker, OTHER.to_owned()), (Runtime::Containerd, ID.to_owned())]);
    let twice = format!("/docker/{OTHER}/docker/{ID}");
    assert_eq!(parse(&twice).last().unwrap().cgroup, twice);
    let step = parse(&format!("/slurm/uid_1/job_2/step_0/libpod-{ID}.scope"));
    assert_eq!(step.len(), 2);
}

#[test]
fn what_is_no_container_has_none() {
    for path in [
        "/".to_owned(),
        "/system.slice/docker.service".to_owned(),
        format!("/machine.slice/libpod-conmon-{ID}.scope"),
        format!("/system.slice/crio-conmon-{ID}.scope"),
        "/system.slice/docker-desktop.scope".to_owned(),
        format!("/docker/{ID}x"),
        format!("/elsewhere/{ID}"),
        "/kubepods/burstable".to_owned(),
        format!("/docker-{ID}"),
    ] {
        assert_eq!(parse(&path), [], "{path}");
    }
}

#[test]
fn parts_that_could_be_ids_are_candidates() {
    let ids = |path: &str| candidates(path).into_iter().map(|found| found.id).collect::<Vec<_>>();
    assert_eq!(ids("/default/web.1"), ["web.1", "default"]);
    assert_eq!(ids("/system.slice/cron.service"), [""; 0]);
    assert_eq!(ids("/a/b/c/d/e/f").len(), MOST_CANDIDATES);
    assert_eq!(candidates("/default/web")[0].cgroup, "/default/web");
}

proptest! {
    #[test]
    fn an_id_is_never_a_path(text in "[a-f0-9./\\\\\u{0}:_-]{0,80}") {
        prop_assert!(!is_id(&text) || (!text.contains('/') && text != "." && text != ".." && !text.contains('\0')));
        for found in parse(&format!("/docker/{text}")).into_iter().chain(candidates(&text)) {
            prop_assert!(is_id(&found.id), "{found:?}");
        }
    }

    #[test]
    fn what_is_found_lies_on_the_path(
        parts in proptest::collection::vec(
            prop_oneof![
                Just(format!("docker-{ID}.scope")), Just(ID.to_owned()), Just("docker".to_owned()),
                Just("kubepods".to_owned()), Just("burstable".to_owned()), Just(format!("pod{UID}")),
                Just(format!("libpod-{ID}")), Just("machine-a.scope".to_owned()), Just("..".to_owned()),
                Just("job_1".to_owned()), Just("step_0".to_owned()), Just("slurmstepd.scope".to_owned()), ".{0,20}",
            ],
            0..12,
        ),
    ) {
        let path = format!("/{}", parts.join("/"));
        let found = parse(&path);
        for (outer, inner) in found.iter().zip(found.iter().skip(1)) {
            prop_assert!(inner.cgroup.starts_with(&outer.cgroup));
        }
        for one in found.iter().chain(&candidates(&path)) {
            prop_assert!(is_id(&one.id));
            let below = format!("{}/", one.cgroup);
            prop_assert!(path == one.cgroup || path.starts_with(&below));
        }
    }
}
