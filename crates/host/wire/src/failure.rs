//! Errors of the interface.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{INTERFACE_NAME, SERVICE_NAME};

/// Why a call was not carried out. The names are part of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", content = "parameters")]
pub enum Failure {
    /// The caller may not do this to these threads.
    #[error("not permitted: {reason}")]
    NotPermitted {
        /// What stands against it.
        reason: String,
    },
    /// No such process, thread or program is managed.
    #[error("not managed: {what}")]
    NotManaged {
        /// What was asked for.
        what: String,
    },
    /// The daemon runs another policy than the caller asks for.
    #[error(
        "symbiontd runs policy '{running}', not '{asked}': one policy places all programs of a \
         machine; leave out --policy, or change the daemon's configuration"
    )]
    PolicyConflict {
        /// The policy that places the programs.
        running: String,
        /// The policy that the caller asks for.
        asked: String,
    },
    /// The caller's user has as much as it may have.
    #[error("too many {what}: a user may have {limit}")]
    QuotaExceeded {
        /// Of what.
        what: String,
        /// How many are allowed.
        limit: u64,
    },
    /// The machine or its configuration does not allow it.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The message does not follow the protocol.
    #[error("protocol error: {reason}")]
    Protocol {
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such method.
    #[error("symbiontd has no method {method}; it may be older than this program")]
    MethodNotFound {
        /// The method that was called.
        method: String,
    },
}

impl Failure {
    /// The varlink name of the error and its parameters.
    #[must_use]
    pub fn into_parts(self) -> (String, Map<String, Value>) {
        let name = match &self {
            // The name that every varlink client knows.
            Self::MethodNotFound { .. } => format!("{SERVICE_NAME}.MethodNotFound"),
            other => format!("{INTERFACE_NAME}.{}", other.name()),
        };
        let parameters = match serde_json::to_value(&self) {
            Ok(Value::Object(mut tagged)) => tagged.remove("parameters"),
            _ => None,
        };
        (name, parameters.and_then(|value| value.as_object().cloned()).unwrap_or_default())
    }

    /// The failure of this name; one that is not known is a [`Failure::Refused`] that quotes it.
    #[must_use]
    pub fn from_parts(name: &str, parameters: Map<String, Value>) -> Self {
        let short = name.rsplit('.').next().unwrap_or_default();
        let tagged = json!({ "error": short, "parameters": parameters });
        serde_json::from_value(tagged).unwrap_or_else(|_| Self::Refused {
            reason: format!("symbiontd reports {name} {}", Value::Object(parameters)),
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::NotPermitted { .. } => "NotPermitted",
            Self::NotManaged { .. } => "NotManaged",
            Self::PolicyConflict { .. } => "PolicyConflict",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::Refused { .. } => "Refused",
            Self::Protocol { .. } => "Protocol",
            Self::MethodNotFound { .. } => "MethodNotFound",
        }
    }
}
