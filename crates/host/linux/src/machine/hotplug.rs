//! CPUs that go offline and come online while programs are managed.
//!
//! The list of online CPUs is read at each sample, which takes about a microsecond. When it differs from the
//! topology's, the topology is read anew, and with it what is known of cpusets. A tree that changes while it is
//! read contradicts itself: then the old topology stays until the next sample.

use symbiont_topology::HostTopology;

use super::{LinuxMachine, Wait};
use crate::switches::Alarm;

impl<W: Wait> LinuxMachine<W> {
    /// Reads the topology anew if other CPUs are online now; did it change?
    pub(super) fn follow_topology(&mut self) -> bool {
        if self.online.now().is_none_or(|online| online == self.host.cpus()) {
            return false;
        }
        match self.host.read_again() {
            Ok(host) if host != self.host => {
                self.take_topology(host);
                true
            }
            _ => false,
        }
    }

    fn take_topology(&mut self, host: HostTopology) {
        self.host = host;
        if let Some(threshold) = self.timer.alarm_threshold() {
            // Without tracepoints on a new CPU, what happens there is seen at the end of a quantum.
            if let Ok(alarm) = Alarm::start(&self.host.cpus(), threshold) {
                self.timer.set_alarm(alarm);
            }
        }
    }
}
