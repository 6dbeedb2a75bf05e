//! What a client can ask for.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Call, Failure, INTERFACE_NAME, SERVICE_NAME};

/// A call with its parameters. Descriptors travel with the message, in the stated order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// What this service is.
    GetInfo,
    /// The description of an interface.
    GetInterfaceDescription {
        /// Which one.
        interface: String,
    },
    /// Manages the caller's process and all that it makes from now on.
    /// Descriptor: a pidfd of the process.
    Enrol {
        /// What people call the program.
        name: String,
        /// The policy that the caller wants; none: the daemon's.
        policy: Option<String>,
        /// Also manages descendants that left the program's session after its end?
        linger: bool,
        /// What the program is run for, by the class's name; none: nothing is said.
        class: Option<String>,
        /// Its job, as the job manager numbers it.
        job: Option<u64>,
        /// The user that it will run as, where the process is held back as root; only root may specify it.
        user: Option<u32>,
        /// What the program is known by from one run to the next, as a digest of its executable; none: its name.
        identity: Option<String>,
    },
    /// Manages processes that already run, with all their threads and descendants.
    /// Descriptors: a pidfd of each process.
    Attach {
        /// What people call the program.
        name: String,
        /// What the program is run for, by the class's name; none: nothing is said.
        class: Option<String>,
    },
    /// Releases the programs of these processes: everything as before, and no longer managed.
    /// Descriptors: a pidfd of each process.
    Detach,
    /// What the daemon does now. With `more`, programs come in several replies.
    Status,
    /// The machine and the threads of programs now. With `more`, they come in several replies.
    Snapshot,
    /// Why a thread, or the threads of a process, are where they are.
    Why {
        /// Number of a thread or a process.
        id: u32,
    },
    /// Reads the configuration again.
    Reload,
}

#[derive(Serialize, Deserialize)]
struct Enrol {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(default)]
    linger: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Attach {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Why {
    id: u32,
}

#[derive(Serialize, Deserialize)]
struct Describe {
    interface: String,
}

impl Request {
    /// The request of a call.
    ///
    /// # Errors
    /// [`Failure::MethodNotFound`] or, where parameters are missing or wrong,
    /// [`Failure::Protocol`].
    pub fn from_call(call: Call) -> Result<Self, Failure> {
        let (interface, method) = call.method.rsplit_once('.').unwrap_or_default();
        let parameters = call.parameters;
        match (interface, method) {
            (SERVICE_NAME, "GetInfo") => Ok(Self::GetInfo),
            (SERVICE_NAME, "GetInterfaceDescription") => {
                let Describe { interface } = read(parameters)?;
                Ok(Self::GetInterfaceDescription { interface })
            }
            (INTERFACE_NAME, "Enrol") => {
                let Enrol { name, policy, linger, class, job, user, identity } = read(parameters)?;
                Ok(Self::Enrol { name, policy, linger, class, job, user, identity })
            }
            (INTERFACE_NAME, "Attach") => {
                let Attach { name, class } = read(parameters)?;
                Ok(Self::Attach { name, class })
            }
            (INTERFACE_NAME, "Detach") => Ok(Self::Detach),
            (INTERFACE_NAME, "Status") => Ok(Self::Status),
            (INTERFACE_NAME, "Snapshot") => Ok(Self::Snapshot),
            (INTERFACE_NAME, "Why") => {
                let Why { id } = read(parameters)?;
                Ok(Self::Why { id })
            }
            (INTERFACE_NAME, "Reload") => Ok(Self::Reload),
            _ => Err(Failure::MethodNotFound { method: call.method }),
        }
    }

    /// The call to send.
    #[must_use]
    pub fn into_call(self) -> Call {
        let more = matches!(self, Self::Status | Self::Snapshot);
        let (method, parameters) = match self {
            Self::GetInfo => (format!("{SERVICE_NAME}.GetInfo"), json!({})),
            Self::GetInterfaceDescription { interface } => (
                format!("{SERVICE_NAME}.GetInterfaceDescription"),
                json!({ "interface": interface }),
            ),
            Self::Enrol { name, policy, linger, class, job, user, identity } => {
                (own("Enrol"), write(&Enrol { name, policy, linger, class, job, user, identity }))
            }
            Self::Attach { name, class } => (own("Attach"), write(&Attach { name, class })),
            Self::Detach => (own("Detach"), json!({})),
            Self::Status => (own("Status"), json!({})),
            Self::Snapshot => (own("Snapshot"), json!({})),
            Self::Why { id } => (own("Why"), json!({ "id": id })),
            Self::Reload => (own("Reload"), json!({})),
        };
        let parameters = parameters.as_object().cloned().unwrap_or_default();
        Call { method, parameters, more, oneway: false }
    }
}

fn own(method: &str) -> String {
    format!("{INTERFACE_NAME}.{method}")
}

fn read<T: DeserializeOwned>(parameters: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(parameters))
        .map_err(|error| Failure::Protocol { reason: error.to_string() })
}

fn write(parameters: &impl Serialize) -> Value {
    serde_json::to_value(parameters).unwrap_or_default()
}
