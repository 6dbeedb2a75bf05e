#!/usr/bin/env python3
"""Compares what Symbiont reads of copies of /sys with what hwloc and lscpu read of them; scripts/topology-corpus.sh
fetches them and calls this.

    scripts/topology-corpus.py REFERENCE COUNTS EXPLAINED FOLDER...

REFERENCE: a folder with lstopo and lscpu; COUNTS: the example `counts` of crates/core/topology; EXPLAINED: expected
differences, one a line: reader, dump, item, reason, with tabs between; FOLDER: of packed or unpacked copies of /sys,
each below `sys`. Sets of CPUs are compared: which are online, and which share a package, a node, a last-level cache,
a core, a core type. What a reader says nothing of is not compared. Prints each difference and a table; ends with 1
if one has no reason, or a reason no difference, or no dump could be read.
"""
import fnmatch, json, os, pathlib, shutil, subprocess, sys, tempfile
import xml.etree.ElementTree as ElementTree

ITEMS = ["threads", "packages", "nodes", "caches", "cores", "types"]
READERS = ["hwloc", "hwloc's export", "lscpu"]
CACHES = ["L2Cache", "L3Cache", "L4Cache", "L5Cache"]


def main():
    reference, counts, explained, *folders = map(pathlib.Path, sys.argv[1:])
    dumps = sorted(dump for folder in folders for dump in folder.iterdir())
    reasons = Reasons(explained)
    tally = {reader: dict.fromkeys(["agree", "explained", "says nothing", "unexplained"], 0) for reader in READERS}
    read, refused = 0, []
    for given in dumps:
        with tempfile.TemporaryDirectory(prefix="dump-") as folder:
            dump, name = completed(unpacked(given, pathlib.Path(folder))), given.name.split(".tar")[0]
            ours = symbiont(counts, dump / "sys")
            if "error" in ours:
                short = ours["error"].replace(f"{dump}/", "")
                refused.append((name, reasons.of("symbiont", name, "refused"), short))
                continue
            read += 1
            for what in ours["left_out"]:
                print(f"{name}: left out: {what.replace(f'{dump}/', '')}")
            text = export(reference, dump)
            theirs = [hwloc(text), our_export(counts, text), lscpu(reference, dump)]
            for reader, said in zip(READERS, theirs):
                tally[reader][compared(reader, name, ours, said, reasons)] += 1
    unexplained = sum(not reason for _, reason, _ in refused) + sum(t["unexplained"] for t in tally.values())
    print(f"\n{len(dumps)} dumps: {read} read, {len(refused)} refused")
    for name, reason, why in refused:
        print(f"  refused: {name}: {why} ({reason or 'NOT EXPLAINED'})")
    print(f"\n{'Symbiont and':14}  agree  differ with reason  says nothing  differ without")
    for reader, counted in tally.items():
        agree, explained, nothing, without = counted.values()
        print(f"{reader:14}  {agree:5}  {explained:18}  {nothing:12}  {without:14}")
    unused = reasons.unused([given.name.split(".tar")[0] for given in dumps])
    for reason in unused:
        print(f"a reason without a difference: {reason}")
    sys.exit(int(unexplained > 0 or bool(unused) or read == 0))


class Reasons:
    """Why a reader differs from Symbiont, by reader, dump and item, each with wildcards."""

    def __init__(self, path):
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        self.all = [tuple(line.split("\t")) for line in lines]
        self.used = set()

    def of(self, *place):
        for line in self.all:
            if all(map(fnmatch.fnmatchcase, place, line[:3])):
                self.used.add(line)
                return line[3]
        return None

    def unused(self, names):
        """Those of dumps that are there."""
        return [" ".join(line[:3]) for line in self.all if line not in self.used and fnmatch.filter(names, line[1])]


def unpacked(given, folder):
    """The folder that holds the dump's `sys`."""
    if given.is_dir():
        shutil.copytree(given, folder / "copy", symlinks=True)
        return folder / "copy"
    subprocess.run(["tar", "-xf", given.resolve(), "-C", folder], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
    return min(folder.rglob("sys/devices/system/cpu"), key=lambda path: len(path.parts)).parents[3]


def completed(folder):
    """A copy gets what hwloc and lscpu need beyond what Symbiont reads: bit maps, cpu/possible, /proc/cpuinfo."""
    cpu = folder / "sys/devices/system/cpu"
    if not (folder / "proc/cpuinfo").exists():
        (folder / "proc").mkdir(exist_ok=True)
        entries = [f"processor\t: {path.name[3:]}\nmodel name\t: any\n\n" for path in cpu.glob("cpu[0-9]*")]
        (folder / "proc/cpuinfo").write_text("".join(sorted(entries)))
    if not (cpu / "possible").exists():
        numbers = {int(path.name[3:]) for path in cpu.glob("cpu[0-9]*")}
        (cpu / "possible").write_text(f"0-{max(numbers)}\n")
    lists = {path: path.with_name(path.name.removesuffix("_list")) for path in cpu.glob("cpu*/topology/*_list")}
    lists |= {path: path.with_name("shared_cpu_map") for path in cpu.glob("cpu*/cache/*/shared_cpu_list")}
    lists |= {path: path.with_name("cpumap") for path in cpu.parent.glob("node/node*/cpulist")}
    for path, as_map in lists.items():
        if not as_map.exists():
            bits = sum(1 << cpu for cpu in cpus(path.read_text().strip()))
            words = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(bits.bit_length(), 1), 32)]
            as_map.write_text(",".join(reversed(words)) + "\n")
    return folder


def compared(reader, name, ours, theirs, reasons):
    """Prints how the two differ; returns the word under which the dump is counted."""
    if not theirs.get("threads"):
        reason = reasons.of(reader, name, "nothing")
        print(f"{name}: {reader} says nothing ({reason or 'NOT EXPLAINED'})")
        return "says nothing" if reason else "unexplained"
    differ, known = False, True
    if reader == "lscpu":
        ours = {**ours, "nodes": {number: found for number, found in ours["nodes"].items() if found}}
    for item in ITEMS:
        if theirs.get(item) is None or theirs[item] == ours[item]:
            continue
        differ, reason = True, reasons.of(reader, name, item)
        known = known and reason is not None
        print(f"{name}: {item}: {shown(ours[item])}; {reader}: {shown(theirs[item])} ({reason or 'NOT EXPLAINED'})")
    return "agree" if not differ else "explained" if known else "unexplained"


def symbiont(counts, path):
    said = subprocess.run([counts, path], check=True, capture_output=True, text=True).stdout
    said = json.loads(said)
    if "error" in said:
        return said
    machine = said["topology"]
    sets = {item: [cpus(one["cpus"]) for one in machine[item]] for item in ["packages", "llcs", "cores"]}
    kinds = {}
    for core in machine["cores"]:
        kinds.setdefault(core["kind"], set()).update(cpus(core["cpus"]))
    return {
        "left_out": said["left_out"],
        "threads": partition([frozenset().union(*sets["cores"])]),
        "packages": partition(sets["packages"]),
        "nodes": {node["id"]: cpus(node["cpus"]) for node in machine["nodes"]},
        "caches": partition(sets["llcs"]),
        "cores": partition(sets["cores"]),
        "types": partition(kinds.values()),
    }


def our_export(counts, text):
    """What Symbiont reads of hwloc's export."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        file.write(text)
        file.flush()
        return symbiont(counts, file.name) if text else {}


def export(reference, dump):
    environment = {**os.environ, "HWLOC_FSROOT": str(dump), "HWLOC_COMPONENTS": "linux,stop"}
    environment["HWLOC_DUMPED_HWDATA_DIR"] = "/nowhere"
    command = [reference / "lstopo", "--disallowed", "--no-io", "--of", "xml", "-"]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def hwloc(text):
    if not text:
        return {}
    root = ElementTree.fromstring(text)
    found = {"threads": set(), "packages": {}, "caches": {}, "cores": {}}

    def below(element, around):
        kind = element.get("type")
        if kind == "PU":
            pu = int(element.get("os_index"))
            found["threads"].add(pu)
            for item in ["packages", "caches", "cores"]:
                if item in around:
                    found[item].setdefault(around[item], set()).add(pu)
        if kind in ["Package", "Core"]:
            around = {**around, {"Package": "packages", "Core": "cores"}[kind]: element}
        if kind in CACHES and "caches" not in around:
            around = {**around, "caches": element}
        for child in element.findall("object"):
            below(child, around)

    below(root.find("object"), {})
    online = found["threads"]
    objects = [element for element in root.iter("object") if element.get("type") == "NUMANode"]
    nodes = {int(node.get("os_index")): bit_map(node.get("cpuset")) & online for node in objects}
    kinds = [bit_map(kind.get("cpuset")) & online for kind in root.iter("cpukind")]
    every = {item: partition(found[item].values()) for item in ["packages", "caches", "cores"]}
    complete = {item: sets if sum(map(len, sets)) == len(online) else None for item, sets in every.items()}
    return {
        "threads": partition([online]),
        **complete,
        "nodes": lowest(nodes),
        "types": partition(kinds) if kinds else None,
    }


def lowest(nodes):
    """Nodes with CPUs of their own: hwloc gives those that have memory only the CPUs that are near."""
    taken, own = set(), {}
    for number in sorted(nodes):
        own[number] = frozenset(nodes[number] - taken)
        taken |= nodes[number]
    return own


def lscpu(reference, dump):
    command = [reference / "lscpu", "--sysroot", dump, "--parse=CPU,CORE,SOCKET,NODE,CACHE"]
    done = subprocess.run(command, capture_output=True, text=True)
    header, rows = "", []
    for line in done.stdout.splitlines():
        if line.startswith("#"):
            header = line
        elif line:
            rows.append(line.split(","))
    caches = header.rpartition(",")[2].split(":")
    data = [at for at, cache in enumerate(caches) if cache[:1] == "L" and cache[1:2] >= "2" and not cache.endswith("i")]
    sets = {item: {} for item in ["packages", "nodes", "caches", "cores"]}
    for cpu, core, socket, node, cache in rows:
        keys = {"packages": socket, "nodes": node, "cores": core}
        shared = cache.split(":")
        # The highest of the levels that this CPU has.
        keys["caches"] = next((f"{at} {shared[at]}" for at in reversed(data) if at < len(shared) and shared[at]), "")
        for item, key in keys.items():
            if key:
                sets[item].setdefault(key, set()).add(int(cpu))
    online = {int(row[0]) for row in rows}
    every = {item: partition(found.values()) for item, found in sets.items()}
    complete = {item: found if sum(map(len, found)) == len(online) else None for item, found in every.items()}
    nodes = {int(number): frozenset(found) for number, found in sets["nodes"].items()}
    return {**complete, "threads": partition([online]), "nodes": nodes or None}


def partition(sets):
    return frozenset(frozenset(one) for one in sets if one)


def cpus(text):
    """A list as the kernel writes it: 0-3,8."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return frozenset(cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1))


def bit_map(text):
    words = [int(word or "0", 16) for word in reversed(text.split(","))]
    return {32 * at + bit for at, word in enumerate(words) for bit in range(32) if word >> bit & 1}


def shown(value):
    """Sets of CPUs as lists, the first few of them."""
    if isinstance(value, dict):
        sets = [f"{number}={listed(found)}" for number, found in sorted(value.items())]
    else:
        sets = [listed(found) for found in sorted(value, key=min)]
    return f"{len(sets)}: " + " ".join(sets[:6]) + (" ..." if len(sets) > 6 else "")


def listed(found):
    runs = []
    for cpu in sorted(found):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


if __name__ == "__main__":
    main()
