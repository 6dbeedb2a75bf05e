//! Where snapshots come from: the daemon, or, where none runs, this process watches by itself.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use symbiont_daemon::Client;
use symbiont_linux::occupancy::CpuTimes;
use symbiont_topology::CpuSet;
use symbiont_wire::{CoreStatus, Request, Snapshot};

use super::only::Only;
use super::watched::Watched;
use crate::args::State;
use crate::client::{silent, sockets};

/// How long a daemon that is asked again and again may take for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Takes snapshots.
pub struct Source {
    sockets: Vec<PathBuf>,
    only: Only,
    client: Option<Client>,
    watched: Option<Watched>,
    /// When a snapshot was taken last.
    times: Option<CpuTimes>,
}

impl Source {
    /// Of the daemon that has this state directory, or of root's.
    pub fn new(state: &State, only: Only) -> anyhow::Result<Self> {
        Ok(Self { sockets: sockets(state)?, only, client: None, watched: None, times: None })
    }

    /// The next snapshot, and what its filter left out where it left nothing. A daemon that ends or starts meanwhile is
    /// noticed.
    ///
    /// # Errors
    /// When no daemon answers and this machine cannot be watched.
    pub fn look(&mut self) -> anyhow::Result<(Snapshot, Option<String>)> {
        let mut snapshot = self.take()?;
        let left_out = self.only.keep(&mut snapshot);
        for thread in &mut snapshot.threads {
            thread.name = name(thread.process, thread.thread);
        }
        let now = CpuTimes::read().ok();
        if let (Some(before), Some(now)) = (&self.times, &now) {
            add_busy_shares(&mut snapshot.cores, before, now);
        }
        self.times = now;
        Ok((snapshot, left_out))
    }

    fn take(&mut self) -> anyhow::Result<Snapshot> {
        // The daemon closes a connection on which nothing was said for a while: then another one.
        for _ in 0..2 {
            if self.client.is_none() {
                if let Some(why) = self.sockets.iter().find_map(|path| silent(path, None)) {
                    anyhow::bail!("{why}");
                }
            }
            let connect = || {
                let connect = |path: &PathBuf| Client::connect_within(path, ANSWERS_WITHIN).ok();
                self.sockets.iter().find_map(connect)
            };
            let Some(mut client) = self.client.take().or_else(connect) else { break };
            if let Ok(pages) = client.call_more(Request::Snapshot {}) {
                self.client = Some(client);
                self.watched = None;
                return whole(pages).context("the daemon said nothing");
            }
        }
        let watched = match self.watched.take() {
            Some(watched) => watched,
            None => Watched::start()?,
        };
        self.watched.insert(watched).look()
    }
}

/// How much of each core was in use between two moments, whatever ran there.
pub fn add_busy_shares(cores: &mut [CoreStatus], before: &CpuTimes, now: &CpuTimes) {
    let passed = now.at.saturating_sub(before.at).as_secs_f64();
    for core in cores {
        let cpus: CpuSet = core.cpus.parse().unwrap_or_default();
        let online = cpus.iter().filter(|cpu| now.cpus.contains_key(cpu)).count();
        let all = passed * f64::from(u32::try_from(online).unwrap_or(u32::MAX));
        let (used, _) = now.used_since(before, &cpus);
        core.busy_share = (all > 0.0).then(|| (used.as_secs_f64() / all).min(1.0));
    }
}

/// A thread's name, as the kernel has it now.
fn name(process: u32, thread: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{process}/task/{thread}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// One snapshot of its pages.
fn whole(pages: Vec<Snapshot>) -> Option<Snapshot> {
    pages.into_iter().reduce(|mut first, page| {
        first.cores.extend(page.cores);
        first.programs.extend(page.programs);
        first.threads.extend(page.threads);
        first.moves.extend(page.moves);
        first.notes.extend(page.notes);
        first
    })
}
