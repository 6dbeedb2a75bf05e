//! What a client can ask for.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Call, Failure, INTERFACE, INTERFACE_NAME, SERVICE_NAME};

/// A call with its parameters. Descriptors travel with the message, in the stated order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "parameters")]
pub enum Request {
    /// What this service is.
    #[serde(rename = "org.varlink.service.GetInfo")]
    GetInfo {},
    /// The description of an interface.
    #[serde(rename = "org.varlink.service.GetInterfaceDescription")]
    GetInterfaceDescription {
        /// Which one.
        interface: String,
    },
    /// Manages the caller's process and all that it makes from now on.
    /// Descriptor: a pidfd of the process.
    #[serde(rename = "io.symbiont.Manager.Enrol")]
    Enrol {
        /// What people call the program.
        name: String,
        /// The policy that the caller wants; none: the daemon's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// Also manages descendants that left the program's session after its end?
        #[serde(default)]
        linger: bool,
        /// What the program is run for, by the class's name; none: nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<String>,
        /// Its job, as the job manager numbers it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<u64>,
        /// The user that it will run as, where the process is held back as root; only root may specify it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
        /// What the program is known by from one run to the next, as a digest of its executable; none: its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
    },
    /// Manages processes that already run, with all their threads and descendants.
    /// Descriptors: a pidfd of each process.
    #[serde(rename = "io.symbiont.Manager.Attach")]
    Attach {
        /// What people call the program; empty: by the names of its processes.
        name: String,
        /// What the program is run for, by the class's name; none: nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<String>,
    },
    /// Releases the programs of these processes: everything as before, and no longer managed.
    /// Descriptors: a pidfd of each process.
    #[serde(rename = "io.symbiont.Manager.Detach")]
    Detach {},
    /// What the daemon does now. With `more`, programs come in several replies.
    #[serde(rename = "io.symbiont.Manager.Status")]
    Status {},
    /// The machine and the threads of programs now. With `more`, they come in several replies.
    #[serde(rename = "io.symbiont.Manager.Snapshot")]
    Snapshot {},
    /// Why a thread, or the threads of a process, are where they are.
    #[serde(rename = "io.symbiont.Manager.Why")]
    Why {
        /// Number of a thread or a process.
        id: u32,
    },
    /// Reads the configuration again.
    #[serde(rename = "io.symbiont.Manager.Reload")]
    Reload {},
}

impl Request {
    /// The request of a call.
    ///
    /// # Errors
    /// [`Failure::MethodNotFound`] or, where parameters are missing or wrong,
    /// [`Failure::Protocol`].
    pub fn from_call(call: Call) -> Result<Self, Failure> {
        let Call { method, parameters, .. } = call;
        let is_there = match method.rsplit_once('.') {
            Some((SERVICE_NAME, name)) => ["GetInfo", "GetInterfaceDescription"].contains(&name),
            Some((INTERFACE_NAME, name)) => INTERFACE.contains(&format!("\nmethod {name}(")),
            _ => false,
        };
        if !is_there {
            return Err(Failure::MethodNotFound { method });
        }
        serde_json::from_value(json!({ "method": method, "parameters": parameters }))
            .map_err(|error| Failure::Protocol { reason: error.to_string() })
    }

    /// The call to send.
    #[must_use]
    pub fn into_call(self) -> Call {
        let more = matches!(self, Self::Status {} | Self::Snapshot {});
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let method = value["method"].as_str().unwrap_or_default().to_owned();
        let parameters = match value["parameters"].take() {
            Value::Object(parameters) => parameters,
            _ => serde_json::Map::new(),
        };
        Call { method, parameters, more, oneway: false }
    }
}
