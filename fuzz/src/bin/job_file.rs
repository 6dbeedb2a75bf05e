//! Job files.
#![no_main]

use serde::Deserialize;
use symbiont_fuzz::fuzz_target;
use symbiont_linux::launch::Job;

#[derive(Deserialize)]
struct JobFile {
    job: Vec<Job>,
}

fuzz_target!(|text: &str| {
    let Ok(file) = toml::from_str::<JobFile>(text) else { return };
    for job in file.job {
        let _ = job.name();
        for (name, value) in job.env.iter() {
            assert!(!name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
        }
    }
});
