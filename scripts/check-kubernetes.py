#!/usr/bin/env python3
"""What scripts/check-kubernetes.sh runs: the files of packaging/kubernetes against schemas and rules of their own.

It applies the few things of kustomize that the files use (images, a ConfigMap's files, JSON patches of the DaemonSet),
for the base, for the base with each component and for each overlay, and checks each result.
"""

import copy
import json
import re
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "packaging/kubernetes"
# `recursiveReadOnly` is a field since then.
RELEASES = [f"1.{minor}" for minor in range(30, 38)]
# Sockets of runtimes are below these: what may write there is root of the node.
TOO_MUCH = ["/", "/run", "/var", "/var/run", "/var/lib", "/etc", "/proc", "/dev"]
TOO_MUCH += ["/run/containerd", "/run/k3s/containerd"]
WRITABLE = {"/run/symbiont", "/var/lib/symbiont"}
KEYS = {
    "Kustomization": {"namespace", "resources", "components", "configMapGenerator", "images", "patches"},
    "Component": {"patches"},
}


class Wrong(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Wrong(message)


def tree():
    """All files, by their paths."""
    files = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(HERE.rglob("*")) if path.is_file()}
    for other in ["Cargo.toml", "docs/kubernetes.md", "packaging/symbiontd.toml"]:
        files[other] = (ROOT / other).read_text()
    return files


def within(folder, name):
    path = (ROOT / "packaging/kubernetes" / folder / name).resolve()
    return str(path.relative_to(ROOT))


def kustomization(files, folder):
    path = within(folder, "kustomization.yaml")
    need(path in files, f"{folder} has no kustomization.yaml")
    found = yaml.safe_load(files[path])
    kind = found.get("kind")
    need(kind in KEYS, f"{path}: kind {kind}")
    version = {"Kustomization": "v1beta1", "Component": "v1alpha1"}[kind]
    need(found["apiVersion"] == f"kustomize.config.k8s.io/{version}", f"{path}: apiVersion")
    unknown = set(found) - KEYS[kind] - {"apiVersion", "kind"}
    need(not unknown, f"{path}: {unknown} is not known to this check")
    return found


def step(at, key):
    key = key.replace("~1", "/").replace("~0", "~")
    return at[int(key)] if isinstance(at, list) else at[key]


def apply(document, operation, where):
    """One operation of RFC 6902."""
    *above, last = operation["path"].lstrip("/").split("/")
    try:
        at = document
        for key in above:
            at = step(at, key)
        if operation["op"] != "add":
            old = step(at, last)
    except (KeyError, IndexError, ValueError) as error:
        raise Wrong(f"{where}: {operation['path']} leads nowhere ({error})") from error
    last = last.replace("~1", "/").replace("~0", "~")
    index = int(last) if isinstance(at, list) and last != "-" else last
    match operation["op"]:
        case "add" if isinstance(at, list):
            at.insert(len(at) if index == "-" else index, operation["value"])
        case "add" | "replace":
            at[index] = operation["value"]
        case "remove":
            del at[index]
        case "test":
            need(old == operation["value"], f"{where}: {operation['path']} is {old}")
        case other:
            raise Wrong(f"{where}: operation {other}")


def patch(resources, patches, where):
    for entry in patches or []:
        target = entry["target"]
        matching = [r for r in resources if r["kind"] == target["kind"] and r["metadata"]["name"] == target["name"]]
        need(len(matching) == 1, f"{where}: {len(matching)} resources match {target}")
        for operation in yaml.safe_load(entry["patch"]):
            apply(matching[0], operation, where)


def build(files, folder):
    """The resources of a folder, as kustomize would make them, but for the suffixes of ConfigMaps' names."""
    of = kustomization(files, folder)
    resources = []
    for name in of.get("resources", []):
        path = within(folder, name)
        if path in files:
            resources += [part for part in yaml.safe_load_all(files[path]) if part]
        else:
            resources += build(files, path.removeprefix("packaging/kubernetes/"))
    for generator in of.get("configMapGenerator", []):
        missing = [name for name in generator["files"] if within(folder, name) not in files]
        need(not missing, f"{folder}: ConfigMap without {missing}")
        data = {name: files[within(folder, name)] for name in generator["files"]}
        metadata = {"name": generator["name"], "namespace": of.get("namespace")}
        resources.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for name in of.get("components", []):
        component = within(folder, name).removeprefix("packaging/kubernetes/")
        patch(resources, kustomization(files, component)["patches"], component)
    for image in of.get("images", []):
        for container in [c for r in resources if r["kind"] == "DaemonSet" for c in containers(r)]:
            need(container["image"] == image["name"], f"{folder}: image {container['image']}")
            container["image"] = f"{image['newName']}:{image['newTag']}"
    patch(resources, of.get("patches"), folder)
    return resources


def containers(daemonset):
    return daemonset["spec"]["template"]["spec"]["containers"]


def schemas(resources, where):
    for release in RELEASES:
        for resource in resources:
            try:
                kubernetes_validate.validate(resource, release, strict=True)
            except kubernetes_validate.ValidationError as error:
                raise Wrong(f"{where}: {resource['kind']} by {release}: {error.message}") from error


def privileges(resources, where, version):
    (daemonset,) = [r for r in resources if r["kind"] == "DaemonSet"]
    pod = daemonset["spec"]["template"]["spec"]
    (container,) = containers(daemonset)
    security = container["securityContext"]
    labels = daemonset["spec"]["template"]["metadata"]["labels"]
    selector = daemonset["spec"]["selector"]["matchLabels"]
    need(selector.items() <= labels.items(), f"{where}: the selector misses the pods")
    need(container["image"].endswith(f":{version}"), f"{where}: {container['image']} is not of {version}")
    need(security["privileged"] is False and security["allowPrivilegeEscalation"] is False, f"{where}: privileged")
    need(security["readOnlyRootFilesystem"] is True, f"{where}: its root file system can be written")
    need(security["capabilities"]["drop"] == ["ALL"], f"{where}: capabilities are not dropped first")
    need(pod["securityContext"]["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost"), f"{where}: no seccomp")
    need(pod["automountServiceAccountToken"] is False, f"{where}: it has a token of the API server")
    need(any(key.startswith("symbiont.dev/") for key in pod["nodeSelector"]), f"{where}: it runs on all nodes")
    added = security["capabilities"]["add"]
    need(len(set(added)) == len(added), f"{where}: a capability is added twice")
    need(pod["hostNetwork"] == ("NET_ADMIN" in added), f"{where}: hostNetwork and NET_ADMIN belong together")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    odd = volumes.keys() ^ mounts.keys()
    need(not odd, f"{where}: {odd} are mounts without a volume, or volumes without a mount")
    for name, mount in mounts.items():
        path = volumes[name].get("hostPath", {}).get("path")
        need(path not in TOO_MUCH, f"{where}: mounts {path}")
        need(mount.get("readOnly") is True or path in WRITABLE, f"{where}: {path} can be written")
        both = mount.get("recursiveReadOnly") and mount.get("mountPropagation", "None") != "None"
        need(not both, f"{where}: {name} is recursively read-only and gets mounts")
        if name == "names":
            need(mount["mountPath"] == f"/host{path}" or path.startswith("/run/k3s/"), f"{where}: {path} is at {mount}")


REASONED = re.compile(r"^ *- (?:name: \w+\n +mountPath:|[A-Z_]+$|op: (?!test|remove))", re.M)


def reasons(files):
    """Each capability, mount and operation of a component has a comment above it, or follows one that has."""
    for path, text in files.items():
        if not path.startswith("packaging/kubernetes/") or "overlays" in path or not path.endswith(".yaml"):
            continue
        lines = text.split("\n")
        for found in REASONED.finditer(text):
            number = text.count("\n", 0, found.start() + (found[0].startswith("\n")))
            above = lines[number - 1].strip()
            what = lines[number].strip()
            if what == "- ALL" or (what.startswith("- op:") and above.endswith("patch: |-")):
                continue
            of_names = what.startswith("- op: replace") and "hostPath" in lines[number + 1]
            need(above.startswith("#") or of_names, f"{path}:{number + 1}: no reason above `{what}`")


def configuration(files):
    base = "packaging/kubernetes/base/"
    known = set(re.findall(r"^#?\[?\[?([a-z_.]+)\]?\]?(?: =|$)", files["packaging/symbiontd.toml"], re.M))
    known |= {part for key in known for part in key.split(".")}

    def walk(table):
        for key, value in table.items():
            need(key in known, f"{base}symbiontd.toml: {key} is no key of packaging/symbiontd.toml")
            if isinstance(value, dict):
                walk(value)

    walk(tomllib.loads(files[base + "symbiontd.toml"]))
    tomllib.loads(files[base + "50-node.toml"])
    profile = json.loads(files["packaging/kubernetes/seccomp/symbiont.json"])
    allowed = {n for call in profile["syscalls"] if call["action"] == "SCMP_ACT_ALLOW" for n in call["names"]}
    need(profile["defaultAction"] == "SCMP_ACT_ERRNO", "the profile allows what it does not name")
    need({"perf_event_open", "sched_setaffinity", "setpriority"} <= allowed, "the profile refuses too much")
    bad = allowed & {"mount", "ptrace", "bpf", "setns", "unshare", "init_module", "kexec_load", "process_vm_writev"}
    need(not bad, f"the profile allows {bad}")


def page(files, built):
    """The page names each capability, mount and component."""
    text = files["docs/kubernetes.md"]
    for resources in built:
        (daemonset,) = [r for r in resources if r["kind"] == "DaemonSet"]
        (container,) = containers(daemonset)
        for name in container["securityContext"]["capabilities"]["add"]:
            need(f"`{name}`" in text, f"docs/kubernetes.md does not explain {name}")
        for mount in container["volumeMounts"]:
            need(f"`{mount['mountPath'].removeprefix('/host')}`" in text, f"docs/kubernetes.md: {mount['mountPath']}")
    for path in files:
        if path.startswith("packaging/kubernetes/components/"):
            need(f"`{path.split('/')[3]}`" in text, f"docs/kubernetes.md does not explain {path}")


# Components that can be used together, in the order of the overlay.
TOGETHER = ["counters", "births", "cri-o"]


def variants(files):
    """The base, the base with each component and with several, each overlay."""
    yield "base", build(files, "base")
    resources = build(files, "base")
    for name in TOGETHER:
        patch(resources, kustomization(files, f"components/{name}")["patches"], name)
    yield " and ".join(TOGETHER), resources
    for path in files:
        name = path.removeprefix("packaging/kubernetes/")
        if name.startswith("components/"):
            resources = build(files, "base")
            patch(resources, kustomization(files, Path(name).parent)["patches"], name)
            yield str(Path(name).parent), resources
        if name.startswith("overlays/") and name.endswith("kustomization.yaml"):
            yield str(Path(name).parent), build(files, Path(name).parent)


def check(files, deep=True):
    version = re.search(r'^version = "(.*)"$', files["Cargo.toml"], re.M)[1]
    reasons(files)
    configuration(files)
    built = []
    for where, resources in variants(files):
        privileges(resources, where, version)
        if deep:
            schemas(resources, where)
        built.append(resources)
        if deep:
            print(f"check-kubernetes: {where}: {', '.join(r['kind'] for r in resources)}")
    page(files, built)


BASE = "packaging/kubernetes/base/"
DAEMONSET = BASE + "daemonset.yaml"
# Changes that are wrong, each in another way.
MUTANTS = [
    (DAEMONSET, "                - SYS_NICE", "                - SYS_NICE\n                - SYS_BOOT"),
    (DAEMONSET, "# The rules.\n", "\n"),
    (DAEMONSET, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
    (DAEMONSET, "hostNetwork: false", "hostNetwork: true"),
    (DAEMONSET, "            path: /sys/fs/cgroup\n", "            path: /run\n"),
    (DAEMONSET, "mountPropagation: HostToContainer",
     "mountPropagation: HostToContainer\n" + " " * 14 + "recursiveReadOnly: Enabled"),
    (DAEMONSET, "symbiont.dev/node: \"true\"", "kubernetes.io/arch: amd64"),
    (DAEMONSET, "terminationGracePeriodSeconds: 20", "terminationGracePeriodSecond: 20"),
    (DAEMONSET, "hostPID: true", "hostPID: \"yes\""),
    (DAEMONSET, "        - name: names\n          hostPath", "        - name: nam\n          hostPath"),
    (DAEMONSET, "type: RuntimeDefault", "type: Unconfined"),
    (BASE + "kustomization.yaml", "newTag: ", "newTag: 9."),
    (BASE + "kustomization.yaml", "- daemonset.yaml", "- deamonset.yaml"),
    (BASE + "kustomization.yaml", "- 50-node.toml", "- 51-node.toml"),
    (BASE + "symbiontd.toml", "narrow =", "narrows ="),
    ("packaging/kubernetes/components/births/kustomization.yaml", "value: NET_ADMIN", "value: NET_RAW"),
    ("packaging/kubernetes/components/births/kustomization.yaml", "      # Subscribing", "      - op: test\n      # "),
    ("packaging/kubernetes/components/cri-o/kustomization.yaml", "volumes/5/hostPath", "volumes/4/hostPath"),
    ("packaging/kubernetes/components/counters/kustomization.yaml", "name: symbiont\n", "name: symbiontd\n"),
    ("packaging/kubernetes/seccomp/symbiont.json", '"perf_event_open",', '"mount",'),
    ("docs/kubernetes.md", "`SYS_NICE`", "SYS_NICE"),
]


def main():
    files = tree()
    try:
        check(files)
    except Wrong as error:
        sys.exit(f"check-kubernetes: {error}")
    for path, old, new in MUTANTS:
        changed = copy.copy(files)
        changed[path] = files[path].replace(old, new)
        need(changed[path] != files[path], f"a mutant changes nothing: {path}: {old}")
        try:
            check(changed, deep=False)
            schemas(build(changed, "base"), "base")
        except (Wrong, yaml.YAMLError, KeyError):
            continue
        sys.exit(f"check-kubernetes: {path} with {new.strip()!r} passes: the check is of no use")
    releases = f"{RELEASES[0]} to {RELEASES[-1]}"
    print(f"check-kubernetes: all is well for Kubernetes {releases}; {len(MUTANTS)} wrong changes are noticed")


if __name__ == "__main__":
    main()
