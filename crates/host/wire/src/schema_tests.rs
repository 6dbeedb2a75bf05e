use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::*;

/// The schema of what is written, which names each field: an absent value is `null`.
fn schema<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// With `UPDATE_GOLDEN=1` it writes the files instead.
#[test]
fn the_schemas_are_those_of_the_types() {
    for (name, published, schema) in [
        ("status", STATUS_SCHEMA, schema::<Status>("symbiont status --json")),
        ("why", WHY_SCHEMA, schema::<Explanations>("symbiont why --json")),
        ("snapshot", SNAPSHOT_SCHEMA, schema::<Snapshot>("symbiont top --json")),
        ("advice", ADVICE_SCHEMA, schema::<advice::Advice>("symbiont advise --json")),
        ("jobs", JOBS_SCHEMA, schema::<jobs::NodeJobs>("GET /jobs")),
    ] {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let path = format!("{}/src/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, &text).unwrap();
            continue;
        }
        assert_eq!(published, text, "UPDATE_GOLDEN=1 cargo test -p symbiont-wire");
    }
}

/// The fields of a type, from the parentheses after its name.
fn described(name: &str) -> Vec<String> {
    let (_, after) = INTERFACE.split_once(&format!("{name}(")).unwrap();
    let inside = after.split_once(')').unwrap().0;
    let mut names: Vec<String> =
        inside.split(',').map(|field| field.split_once(':').unwrap().0.trim().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_description_of_the_interface_has_the_fields_of_the_schemas() {
    let mut checked = 0;
    for (reply, published) in [
        ("Status() -> ", STATUS_SCHEMA),
        ("Why(id: int) -> ", WHY_SCHEMA),
        ("Snapshot() -> ", SNAPSHOT_SCHEMA),
    ] {
        let schema: serde_json::Value = serde_json::from_str(published).unwrap();
        let types = schema["$defs"].as_object().unwrap().iter();
        let types = types.map(|(name, schema)| (format!("type {name} "), schema));
        for (name, schema) in types.chain([(format!("method {reply}"), &schema)]) {
            let fields: Vec<String> =
                schema["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(described(&name), fields, "{name}");
            checked += 1;
        }
    }
    assert_eq!(checked, 31);
}
