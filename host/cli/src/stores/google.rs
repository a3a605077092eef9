//! Google Cloud Storage, and what answers like it. Credentials, in this order: the `GOOGLE_`
//! variables (a service account's key, application credentials), those of `gcloud`, the instance's
//! own.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::StaticCredentialProvider;
use object_store::gcp::{
    GcpCredential, GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey as Key,
};

use super::endpoint::Connection;
use super::patience::Connector;
use super::{Opened, is_true, once, patient, refused, variable, variables};
use crate::error::Error;

const VENDOR: &str = "https://storage.googleapis.com";

/// The clients for a bucket.
///
/// # Errors
/// If the configuration lacks something or contradicts itself.
pub fn open(name: &str, connection: &Connection) -> Result<Opened, Error> {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_config(Key::Client(ClientConfigKey::Timeout), super::NO_TIMEOUT)
        .with_config(Key::Client(ClientConfigKey::UserAgent), super::USER_AGENT);
    if let Some(path) = variable("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    for (variable, value) in variables("GOOGLE_") {
        if let Ok(key) = variable.parse::<Key>() {
            builder = builder.with_config(key, value);
        }
    }
    let get = |key| builder.get_config_value(&key);
    let endpoint = connection
        .endpoint
        .clone()
        .or_else(|| get(Key::BaseUrl))
        .or_else(|| variable("STORAGE_EMULATOR_HOST").map(with_scheme));
    let configured = get(Key::Client(ClientConfigKey::AllowHttp)).is_some_and(|v| is_true(&v));
    let allow_http = connection.allows_http(endpoint.as_deref(), configured)?;
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint);
    }
    if builder.get_config_value(&Key::SkipSignature).is_some_and(|value| is_true(&value)) {
        // Without it, the client would ask the instance for credentials all the same.
        let nobody = GcpCredential { bearer: String::new() };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(nobody)));
    } else {
        check_credentials(&builder)?;
    }
    let builder = builder
        .with_config(Key::Client(ClientConfigKey::AllowHttp), allow_http.to_string())
        .with_bucket_name(name)
        .with_http_connector(Connector::default());
    let build = |builder: GoogleCloudStorageBuilder| -> Result<Arc<GoogleCloudStorage>, Error> {
        builder.build().map(Arc::new).map_err(|source| refused(&source))
    };
    let patient = build(builder.clone().with_retry(patient()))?;
    let credentials = patient.credentials().clone();
    let once = build(builder.with_retry(once()).with_credentials(credentials))?;
    let address = endpoint.unwrap_or_else(|| VENDOR.to_owned());
    Ok(Opened { pages: patient.clone(), patient, once, lists_in_order: true, address })
}

/// Emulators are often named by host and port alone.
fn with_scheme(host: String) -> String {
    if host.contains("://") { host } else { format!("http://{host}") }
}

/// Without any, the instance's own are asked for, unless that is ruled out.
fn check_credentials(builder: &GoogleCloudStorageBuilder) -> Result<(), Error> {
    let has = |key| builder.get_config_value(&key).is_some();
    let named = has(Key::ServiceAccount)
        || has(Key::ServiceAccountKey)
        || has(Key::ApplicationCredentials)
        || has(Key::BearerToken);
    let of_gcloud = std::env::home_dir().is_some_and(|home| {
        home.join(".config/gcloud/application_default_credentials.json").is_file()
    });
    let ruled_out = variable("NO_GCE_CHECK").is_some_and(|value| is_true(&value));
    if ruled_out && !named && !of_gcloud {
        return Err(Error::invalid(
            "there are no credentials for Google Cloud Storage",
            "set GOOGLE_APPLICATION_CREDENTIALS to the file with them",
        ));
    }
    Ok(())
}
