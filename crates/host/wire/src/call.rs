//! The envelopes of calls and replies.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Failure;

/// A call of any method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Interface and method, as `org.varlink.service.GetInfo`.
    pub method: String,
    /// Parameters by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Does the caller take several replies?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Does the caller want no reply at all?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oneway: bool,
}

/// A frame that is no call, or no reply.
#[derive(Debug, thiserror::Error)]
#[error("not understood: {0}")]
pub struct CallError(#[from] serde_json::Error);

impl Call {
    /// Reads a frame.
    ///
    /// # Errors
    /// When it is no call.
    pub fn from_frame(frame: &[u8]) -> Result<Self, CallError> {
        Ok(serde_json::from_slice(frame)?)
    }
}

/// What comes back for a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Name of the error; none if the call was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Results by name, or what the error says.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Does another reply follow?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

impl Reply {
    /// A reply with results.
    #[must_use]
    pub fn of(results: &impl Serialize) -> Self {
        let parameters = match serde_json::to_value(results) {
            Ok(Value::Object(parameters)) => parameters,
            _ => Map::new(),
        };
        Self { error: None, parameters, continues: false }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// When it is no reply.
    pub fn from_frame(frame: &[u8]) -> Result<Self, CallError> {
        Ok(serde_json::from_slice(frame)?)
    }

    /// The results, or why there are none.
    ///
    /// # Errors
    /// The failure that the other side reports; [`Failure::Protocol`] if the results lack
    /// something.
    pub fn into_results<T: serde::de::DeserializeOwned>(self) -> Result<T, Failure> {
        match self.error {
            Some(name) => Err(Failure::from_parts(&name, self.parameters)),
            None => serde_json::from_value(Value::Object(self.parameters))
                .map_err(|error| Failure::Protocol { reason: error.to_string() }),
        }
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        let (name, parameters) = failure.into_parts();
        Self { error: Some(name), parameters, continues: false }
    }
}
