//! What the readers make of machines, as one line of JSON each, for `scripts/topology-corpus.sh`: a folder is a copy
//! of `/sys`, a file is an export of hwloc. A machine that is refused has an error in place of a topology.

use std::path::Path;

use serde_json::{Value, json};
use symbiont_topology::{Topology, hwloc, read_tree_noting};

fn main() {
    for path in std::env::args().skip(1) {
        println!("{}", described(Path::new(&path)));
    }
}

fn described(path: &Path) -> Value {
    let read: Result<(Topology, Vec<String>), String> = match path.is_dir() {
        true => read_tree_noting(path)
            .map(|(topology, left_out)| {
                (topology, left_out.iter().map(ToString::to_string).collect())
            })
            .map_err(|error| error.to_string()),
        false => hwloc::from_xml(path)
            .map(|topology| (topology, Vec::new()))
            .map_err(|error| error.to_string()),
    };
    match read {
        Ok((topology, left_out)) => {
            json!({ "path": path, "topology": topology, "left_out": left_out })
        }
        Err(error) => json!({ "path": path, "error": error }),
    }
}
