//! Several jobs, described in a file.

use std::fs;
use std::path::Path;
use std::process::Output;

use libtest_mimic::Trial;

use crate::exits::launched;

/// Runs the jobs that a text describes; `DIR` stands for the directory.
fn run(directory: &Path, jobs: &str) -> Output {
    let file = directory.join("jobs.toml");
    fs::write(&file, jobs.replace("DIR", &directory.display().to_string())).expect("a file");
    launched(&["@job", "--file", &file.display().to_string()], &[])
        .output()
        .expect("the launcher starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// This module's tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("jobs_run_where_and_with_what_their_description_says", || {
            let directory = tempfile::tempdir()?;
            fs::write(directory.path().join("in"), "input\n")?;
            let output = run(
                directory.path(),
                r#"
                [[job]]
                command = ["sh", "-c", "cat; echo $COLOUR; pwd; echo problem >&2"]
                env = { COLOUR = "blue" }
                directory = "/"
                stdin = "DIR/in"
                stdout = "DIR/both"
                stderr = "DIR/both"

                [[job]]
                command = ["sh", "-c", "echo ${COLOUR-none}"]
                stdout = "DIR/other"
                "#,
            );
            assert!(output.status.success(), "{}", said(&output));
            let both = fs::read_to_string(directory.path().join("both"))?;
            assert_eq!(both, "input\nblue\n/\nproblem\n");
            assert_eq!(fs::read_to_string(directory.path().join("other"))?, "none\n");
            Ok(())
        }),
        Trial::test("jobs_first_failure_in_order_of_the_file_decides_the_status", || {
            let directory = tempfile::tempdir()?;
            let output = run(
                directory.path(),
                r#"
                job = [
                    { command = ["true"] },
                    { command = ["sh", "-c", "while [ ! -e DIR/go ]; do sleep 0.02; done; exit 3"] },
                    { command = ["sh", "-c", "> DIR/go; exit 4"] },
                ]
                "#,
            );
            assert_eq!(output.status.code(), Some(3), "{}", said(&output));
            Ok(())
        }),
        Trial::test("jobs_of_which_one_cannot_run_leave_the_others_running", || {
            let directory = tempfile::tempdir()?;
            let output = run(
                directory.path(),
                r#"
                job = [
                    { command = ["symbiont-no-such-program"] },
                    { command = ["echo", "ran"] },
                ]
                "#,
            );
            assert_eq!(output.status.code(), Some(127));
            assert_eq!(output.stdout, b"ran\n");
            assert!(said(&output).contains("cannot run 'symbiont-no-such-program': not found"));
            Ok(())
        }),
        Trial::test("jobs_whose_files_cannot_be_opened_start_nothing", || {
            for (key, role) in [
                ("stdin", "stdin"),
                ("stdout", "stdout"),
                ("stderr", "stderr"),
                ("directory", "directory"),
            ] {
                let directory = tempfile::tempdir()?;
                let output = run(
                    directory.path(),
                    &format!(
                        r#"
                        job = [
                            {{ command = ["echo", "ran"] }},
                            {{ name = "bad", command = ["true"], {key} = "DIR/no/where" }},
                        ]
                        "#
                    ),
                );
                assert_eq!(output.status.code(), Some(125));
                assert_eq!(output.stdout, b"");
                let wanted = format!("job 'bad': cannot open {}", directory.path().display());
                assert!(said(&output).contains(&wanted), "{}", said(&output));
                assert!(said(&output).contains(&format!("as its {role}")), "{}", said(&output));
            }
            Ok(())
        }),
    ]
}
