//! Containers of programs, in words.

use std::fs;

use symbiont_wire::{Container, ProgramStatus};

use crate::top::clean::clean;

/// Names, image, runtime and class of service.
pub fn container_words(of: &Container) -> String {
    let image = of.image.as_ref().map(|image| format!("image {image}"));
    let runtime = format!("{} {}", of.runtime, of.short_id());
    let about: Vec<String> = image.into_iter().chain([runtime]).chain(of.qos.clone()).collect();
    clean(&format!("{} ({})", of.display(), about.join(", ")))
}

/// The container of a program; where the program is called by it, the command of its first process, too. All may read
/// that in /proc, so `command_of` does.
pub fn container_line(
    program: &ProgramStatus,
    command_of: impl Fn(u32) -> Option<String>,
) -> Option<String> {
    let of = program.container.as_ref()?;
    let first = program.roots.first().filter(|_| program.name == of.display());
    let command = first.and_then(|first| command_of(*first)).map(|name| clean(&name));
    let command = command.map(|name| format!("{name}, ")).unwrap_or_default();
    Some(format!("{command}in {}", container_words(of)))
}

/// The short name of a process.
pub fn command_of(process: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{process}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_called_by_its_container_says_its_command() {
        let some = |text: &str| Some(text.to_owned());
        let container = Container {
            namespace: some("shop"),
            pod: some("web-0"),
            container: some("nginx"),
            image: some("nginx:1"),
            id: "0123456789abcdef".to_owned(),
            runtime: "containerd".to_owned(),
            qos: some("burstable"),
            ..Container::default()
        };
        let named = |name: &str| ProgramStatus {
            name: name.to_owned(),
            roots: vec![7],
            container: Some(container.clone()),
            ..ProgramStatus::default()
        };
        let command = |process| Some(format!("nginx\u{1b}{process}"));
        let words = "in shop/web-0/nginx (image nginx:1, containerd 0123456789ab, burstable)";
        let line = |name: &str| container_line(&named(name), command).unwrap();
        assert_eq!(line("shop/web-0/nginx"), format!("nginx?7, {words}"));
        assert_eq!(line("server"), words);
        assert_eq!(container_line(&ProgramStatus::default(), command), None);
        let unnamed = Container {
            id: "a\u{1b}b".to_owned(),
            runtime: "oci".to_owned(),
            ..Container::default()
        };
        assert_eq!(container_words(&unnamed), "oci/a?b (oci a?b)");
    }
}
