//! Parameters of policies, as arguments.

use clap::Args;
use symbiont_policy::{Entry, SetError, Settings, Values};

/// Seed and parameters of the policy.
#[derive(Debug, Args)]
pub struct PolicyOptions {
    /// Seed of policies that draw at random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub parameters: Parameters,
}

/// Parameters of the policy. Each policy declares its own.
#[derive(Debug, Clone, Args)]
pub struct Parameters {
    /// Set a parameter of the policy, e.g. threshold=2; repeatable. `symbiont policies NAME` lists the
    /// parameters of a policy
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub set: Vec<(String, String)>,
}

impl PolicyOptions {
    /// The settings of a policy.
    pub fn settings(&self, policy: &Entry) -> Result<Settings, SetError> {
        let values = self.parameters.values(policy)?;
        Ok(Settings { seed: self.seed, values, ..Settings::default() })
    }
}

impl Parameters {
    /// The values that a policy's parameters are set to.
    pub fn values(&self, policy: &Entry) -> Result<Values, SetError> {
        policy.values(self.set.iter().map(|(key, value)| (key, value)))
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    let pair = pair.filter(|(key, _)| !key.is_empty());
    pair.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| "a parameter is set as KEY=VALUE, for example threshold=2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_key_and_a_value() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(parse_pair("threshold=2"), pair("threshold", "2"));
        assert_eq!(parse_pair("together=a+b,c+d=e"), pair("together", "a+b,c+d=e"));
        for wrong in ["threshold", "=2", ""] {
            assert!(parse_pair(wrong).unwrap_err().contains("KEY=VALUE"), "{wrong}");
        }
    }
}
