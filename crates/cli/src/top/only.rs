//! Which programs are listed: all, or those that a user asked for.

use std::collections::BTreeSet;

use anyhow::Context;
use symbiont_topology::counted;
use symbiont_wire::Snapshot;

use crate::args::Top;

/// What is listed; all by default.
#[derive(Debug, Default)]
pub struct Only {
    /// Threads of these processes, if any is named.
    pub pids: Vec<u32>,
    /// Programs of this user.
    pub user: Option<u32>,
}

impl Only {
    /// As asked for.
    ///
    /// # Errors
    /// When there is no such user.
    pub fn of(args: &Top) -> anyhow::Result<Self> {
        let user = args.user.as_deref().map(uid).transpose()?;
        Ok(Self { pids: args.pids.clone(), user })
    }

    /// Leaves out what was not asked for; where nothing else is there, says what.
    pub fn keep(&self, snapshot: &mut Snapshot) -> Option<String> {
        let (programs, threads) = (snapshot.programs.len(), snapshot.threads.len());
        self.retain(snapshot);
        let is_all = snapshot.threads.is_empty() && (threads > 0 || programs > 0);
        is_all.then(|| {
            let (programs, threads) = (counted(programs, "program"), counted(threads, "thread"));
            format!("nothing is left by {}: {programs} with {threads} not shown", self.words())
        })
    }

    /// As on the command line.
    fn words(&self) -> String {
        let user = self.user.map(|user| format!("-u {user}"));
        let pids: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        let pids = (!pids.is_empty()).then(|| format!("-p {}", pids.join(",")));
        user.into_iter().chain(pids).collect::<Vec<_>>().join(" ")
    }

    fn retain(&self, snapshot: &mut Snapshot) {
        if let Some(user) = self.user {
            snapshot.programs.retain(|program| program.uid == user);
            let kept: BTreeSet<u32> = snapshot.programs.iter().map(|one| one.program).collect();
            snapshot.threads.retain(|thread| kept.contains(&thread.program));
        }
        if !self.pids.is_empty() {
            snapshot.threads.retain(|thread| self.pids.contains(&thread.process));
            let kept: BTreeSet<u32> = snapshot.threads.iter().map(|one| one.program).collect();
            snapshot.programs.retain(|program| kept.contains(&program.program));
        }
        if self.user.is_some() || !self.pids.is_empty() {
            let kept: BTreeSet<u32> = snapshot.threads.iter().map(|one| one.process).collect();
            snapshot.moves.retain(|moved| kept.contains(&moved.process));
            // Whose these are is not known.
            snapshot.more_threads = 0;
        }
    }
}

/// The number of a user, by name or number.
fn uid(user: &str) -> anyhow::Result<u32> {
    let by_name = || Some(uzers::get_user_by_name(user)?.uid());
    user.parse().ok().or_else(by_name).with_context(|| format!("there is no user '{user}'"))
}
