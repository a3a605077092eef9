//! A profile of AWS's shared files: its static keys, region and endpoint.
//!
//! What a profile may have besides (single sign-on, roles to assume, processes to run) is not taken
//! up here: AWS's own command line exports temporary keys from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::variable;
use crate::error::Error;

/// What ways to credentials a profile may name that are not taken up here.
const NOT_STATIC: [&str; 5] =
    ["sso_session", "sso_start_url", "role_arn", "credential_process", "login_session"];

/// A profile.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Profile {
    name: String,
    /// Access key id and secret.
    pub keys: Option<(String, String)>,
    /// What belongs to temporary keys.
    pub token: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Where S3 answers.
    pub endpoint: Option<String>,
    /// The first of [`NOT_STATIC`] that it has.
    other: Option<&'static str>,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or else the one called `default`, if there is one.
    ///
    /// # Errors
    /// If the named one is in neither file, or a file cannot be read.
    pub fn load() -> Result<Option<Self>, Error> {
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let name = named.as_deref().unwrap_or("default");
        let config = read(config_file().as_deref())?;
        let credentials = read(credentials_file().as_deref())?;
        let profile = Self::find(name, &config, &credentials);
        match (profile, named) {
            (None, Some(name)) => Err(Error::invalid(
                format!("there is no profile `{name}` in {}", place()),
                "correct AWS_PROFILE, or unset it and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )),
            (profile, _) => Ok(profile),
        }
    }

    /// The profile of this name in the text of both files. Keys of the credentials file win.
    fn find(name: &str, config: &str, credentials: &str) -> Option<Self> {
        let in_config = section(config, |title| {
            title == name && name == "default"
                || title.strip_prefix("profile ").is_some_and(|title| title.trim() == name)
        });
        let in_credentials = section(credentials, |title| title == name);
        if in_config.is_none() && in_credentials.is_none() {
            return None;
        }
        let mut settings = in_config.unwrap_or_default();
        settings.extend(in_credentials.unwrap_or_default());
        let other = NOT_STATIC.into_iter().find(|name| settings.contains_key(*name));
        let mut take = |name: &str| settings.remove(name).filter(|value| !value.is_empty());
        Some(Self {
            name: name.to_owned(),
            keys: take("aws_access_key_id").zip(take("aws_secret_access_key")),
            token: take("aws_session_token"),
            region: take("region"),
            endpoint: take("endpoint_url"),
            other,
        })
    }

    /// Fails if it has a way to credentials that is not taken up here.
    ///
    /// # Errors
    /// Then, with the way out.
    pub fn check(&self) -> Result<(), Error> {
        let Some(other) = self.other else { return Ok(()) };
        Err(Error::invalid(
            format!(
                "the AWS profile `{}` gets its credentials by `{other}`, which pugmark does not do",
                self.name
            ),
            "let AWS's command line do it: eval \"$(aws configure export-credentials --format env)\"",
        ))
    }
}

/// Where profiles are looked for, for messages.
pub fn place() -> String {
    let show = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    match (show(credentials_file()), show(config_file())) {
        (Some(credentials), Some(config)) => format!("{credentials} and {config}"),
        _ => "~/.aws".to_owned(),
    }
}

fn credentials_file() -> Option<PathBuf> {
    file("AWS_SHARED_CREDENTIALS_FILE", "credentials")
}

fn config_file() -> Option<PathBuf> {
    file("AWS_CONFIG_FILE", "config")
}

fn file(name: &str, below_home: &str) -> Option<PathBuf> {
    let named = variable(name).map(PathBuf::from);
    named.or_else(|| Some(std::env::home_dir()?.join(".aws").join(below_home)))
}

fn read(path: Option<&Path>) -> Result<String, Error> {
    let Some(path) = path else { return Ok(String::new()) };
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => {
            Err(Error::File { action: "read", path: path.display().to_string(), source })
        }
    }
}

/// The settings of the sections whose title is right. Settings nested below one are left out.
fn section(text: &str, wanted: impl Fn(&str) -> bool) -> Option<BTreeMap<String, String>> {
    let mut found = None;
    let mut within = false;
    for line in text.lines() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = content.strip_prefix('[') {
            let title = title.split(']').next().unwrap_or_default();
            within = wanted(title.trim());
            if within {
                found.get_or_insert_with(BTreeMap::new);
            }
        } else if within && !line.starts_with([' ', '\t']) {
            let Some((name, value)) = content.split_once('=') else { continue };
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next();
            let value = value.unwrap_or_default().trim().to_owned();
            found.get_or_insert_default().insert(name.trim().to_ascii_lowercase(), value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
# Comments; [not a section]
[default]
region = eu-central-1   # here
s3 =
    endpoint_url = http://nested
[profile dev]
region=us-west-2
endpoint_url = https://storage.example.com
aws_access_key_id = of the config
[profile login]
sso_session = corp
[services x]
region = nowhere
";
    const CREDENTIALS: &str = "\
[default]
aws_access_key_id = AKID
aws_secret_access_key = a=b/c+d
[dev]
AWS_ACCESS_KEY_ID = AKDEV
aws_secret_access_key = s
aws_session_token = t
";

    #[test]
    fn both_files_make_a_profile() {
        let found = Profile::find("default", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(found.keys, Some(("AKID".into(), "a=b/c+d".into())));
        assert_eq!(found.region.as_deref(), Some("eu-central-1"));
        assert_eq!((found.endpoint, found.token), (None, None));
        let found = Profile::find("dev", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(found.keys, Some(("AKDEV".into(), "s".into())));
        assert_eq!(found.token.as_deref(), Some("t"));
        assert_eq!(found.endpoint.as_deref(), Some("https://storage.example.com"));
        assert!(found.check().is_ok());
    }

    #[test]
    fn what_is_not_taken_up_is_said() {
        let found = Profile::find("login", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(found.keys, None);
        assert!(found.check().unwrap_err().to_string().contains("`sso_session`"));
        assert_eq!(Profile::find("services x", CONFIG, CREDENTIALS), None);
        assert_eq!(Profile::find("none", CONFIG, CREDENTIALS), None);
    }
}
