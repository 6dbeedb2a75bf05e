use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::{CoreKind, NodeId};

/// Two packages with an L3 each; a core of two threads, and one of another
/// type with one thread; memory in node 0 only.
const EXPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x00000007">
  <object type="Package" os_index="0" cpuset="0x00000003">
   <object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="1024"/>
   <object type="L3Cache" cpuset="0x00000003" cache_size="4096" depth="3">
    <object type="L2Cache" cpuset="0x00000003" cache_size="2048" depth="2">
     <object type="Core" os_index="0" cpuset="0x00000003">
      <object type="PU" os_index="0" cpuset="0x00000001"/>
      <object type="PU" os_index="1" cpuset="0x00000002"/>
     </object>
    </object>
   </object>
  </object>
  <object type="Package" os_index="1" cpuset="0x00000004">
   <object type="NUMANode" os_index="1" cpuset="0x00000004"/>
   <object type="Core" os_index="0" cpuset="0x00000004">
    <object type="PU" os_index="2" cpuset="0x00000004"/>
   </object>
  </object>
 </object>
 <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
  <indexes length="4">0 1 </indexes>
  <u64values length="12">10 21 </u64values>
  <u64values length="12">21 10 </u64values>
 </distances2>
 <cpukind cpuset="0x00000004" forced_efficiency="0">
  <info name="CoreType" value="IntelAtom"/>
  <info name="FrequencyMaxMHz" value="3000"/>
 </cpukind>
 <cpukind cpuset="0x00000003" forced_efficiency="1">
  <info name="CoreType" value="IntelCore"/>
  <info name="FrequencyMaxMHz" value="4000"/>
 </cpukind>
</topology>
"#;

fn read(text: &str) -> Result<Topology, HwlocError> {
    xml::read(text, "m.xml", Origin::HwlocXml("m.xml".to_owned()))
}

#[test]
fn an_export_is_read() {
    let expected = Topology::synthetic(
        "smt:2 cache:4K memory:1K mhz:4000 | package:1 mhz:3000 kind:efficiency capacity:768",
    )
    .unwrap();
    let t = read(EXPORT).unwrap();
    assert_eq!(t.cores(), expected.cores());
    assert_eq!(t.llcs(), expected.llcs());
    assert_eq!(t.packages(), expected.packages());
    assert_eq!(t.cores()[1].kind, CoreKind::Efficiency);
    assert_eq!(t.nodes()[0].memory_bytes, Some(1024));
    assert_eq!(t.nodes()[1].memory_bytes, None);
    assert_eq!(t.nodes()[1].distances[&NodeId(0)], 21);
}

/// hwloc 2.12 gives some threads of a core to one kind and others to another, or to none, where CPUs are offline.
#[test]
fn kinds_that_split_a_core_or_leave_a_cpu_out_are_not_believed() {
    let kinds = |small: &str, large: &str| {
        let text =
            EXPORT.replace(r#"cpukind cpuset="0x00000004"#, &format!(r#"cpukind cpuset="{small}"#));
        read(&text.replace(r#"cpukind cpuset="0x00000003"#, &format!(r#"cpukind cpuset="{large}"#)))
    };
    assert_eq!(kinds("0x00000004", "0x00000003").unwrap(), read(EXPORT).unwrap());
    for (small, large) in [("0x00000006", "0x00000001"), ("0x00000004", "0x00000001")] {
        let t = kinds(small, large).unwrap();
        let all_alike =
            |core: &crate::Core| (core.kind, core.capacity) == (CoreKind::Performance, 1024);
        assert!(t.cores().iter().all(all_alike), "{small} {large}");
    }
}

#[test]
fn damage_is_named_with_its_line() {
    let error = |there: &str, damage: &str| {
        assert!(EXPORT.contains(there));
        read(&EXPORT.replacen(there, damage, 1)).unwrap_err().to_string()
    };
    assert_eq!(
        error(r#"version="2.0""#, ""),
        "m.xml, line 3: not written by hwloc 2 or 3; export it again"
    );
    assert_eq!(
        error(r#"cpuset="0x00000003" local"#, r#"cpuset="3x" local"#),
        "m.xml, line 6: attribute cpuset: '3x' is not a word of a bit map"
    );
    assert_eq!(
        error(r#""PU" os_index="1""#, r#""PU""#),
        "m.xml, line 11: attribute os_index is missing"
    );
    assert_eq!(
        error(r#""PU" os_index="1""#, r#""PU" os_index="0""#),
        "m.xml describes no machine: cpu0 is listed twice"
    );
    assert_eq!(error("10 21 ", "10 "), "m.xml, line 23: 3 distances between 2 nodes");
    assert!(error("</topology>", "").starts_with("m.xml: not XML: "));
}

#[test]
fn a_missing_export_is_named() {
    let error = from_xml(Path::new("/nowhere/m.xml")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/m.xml: No such file"), "{error}");
}

proptest! {
    #[test]
    fn damaged_exports_do_not_panic(at in 0..EXPORT.len(), len in 0usize..40, put in ".{0,4}") {
        let end = (at + len).min(EXPORT.len());
        let damaged = format!("{}{put}{}", &EXPORT[..at], &EXPORT[end..]);
        let _ = read(&damaged);
    }
}

#[test]
fn deep_nesting_is_read_or_refused() {
    let depth = 20_000;
    let deep = format!(
        "<topology version=\"2.0\">{}<object type=\"PU\" os_index=\"0\"/>{}</topology>",
        "<object>".repeat(depth),
        "</object>".repeat(depth)
    );
    let _ = read(&deep);
}

/// The program of hwloc that needs no display.
const LSTOPO: &str = "lstopo-no-graphics";

/// Tests that need hwloc's program say so where it is missing.
pub(crate) fn lstopo() -> Option<Command> {
    match Command::new(LSTOPO).arg("--version").output() {
        Ok(_) => Some(Command::new(LSTOPO)),
        Err(error) => {
            println!(
                "skipped: cannot run {LSTOPO} (package hwloc-nox on Debian and Ubuntu): {error}"
            );
            None
        }
    }
}

/// What hwloc reads when it is run so.
pub(crate) fn as_hwloc_reads(lstopo: &mut Command) -> Topology {
    let output = lstopo.args(["--of", "xml", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read(String::from_utf8_lossy(&output.stdout).trim()).unwrap()
}
