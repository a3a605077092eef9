//! Azure Blob Storage, and what answers like it. Credentials come from the `AZURE_` variables; an
//! identity of the machine is used where they say so.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::azure::{AzureConfigKey as Key, MicrosoftAzure, MicrosoftAzureBuilder};

use super::endpoint::Connection;
use super::patience::Connector;
use super::{Opened, is_true, once, patient, refused, variable, variables};
use crate::error::Error;

/// The clients for a container.
///
/// # Errors
/// If the configuration lacks something or contradicts itself.
pub fn open(name: &str, connection: &Connection) -> Result<Opened, Error> {
    let builder = configured()?;
    let get = |key| builder.get_config_value(&key);
    let emulator = get(Key::UseEmulator).is_some_and(|value| is_true(&value));
    let endpoint = connection.endpoint.clone().or_else(|| get(Key::Endpoint));
    let configured = get(Key::Client(ClientConfigKey::AllowHttp)).is_some_and(|v| is_true(&v));
    let allow_http = connection.allows_http(endpoint.as_deref(), configured)?;
    if !emulator {
        check_credentials(&builder)?;
    }
    let account = get(Key::AccountName).unwrap_or_default();
    let mut builder = builder
        .with_config(Key::Client(ClientConfigKey::AllowHttp), allow_http.to_string())
        .with_container_name(name)
        .with_http_connector(Connector::default());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    let build = |builder: MicrosoftAzureBuilder| -> Result<Arc<MicrosoftAzure>, Error> {
        builder.build().map(Arc::new).map_err(|source| refused(&source))
    };
    let patient = build(builder.clone().with_retry(patient()))?;
    let credentials = patient.credentials().clone();
    let once = build(builder.with_retry(once()).with_credentials(credentials))?;
    let address = endpoint.unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
    Ok(Opened { pages: patient.clone(), patient, once, lists_in_order: true, address })
}

/// What the variables say.
fn configured() -> Result<MicrosoftAzureBuilder, Error> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_config(Key::Client(ClientConfigKey::Timeout), super::NO_TIMEOUT)
        .with_config(Key::Client(ClientConfigKey::UserAgent), super::USER_AGENT);
    if let Some(text) = variable("AZURE_STORAGE_CONNECTION_STRING") {
        for (key, value) in connection_string(&text)? {
            builder = builder.with_config(key, value);
        }
    }
    // The names that Azure's own command line uses.
    for (name, key) in
        [("AZURE_STORAGE_ACCOUNT", Key::AccountName), ("AZURE_STORAGE_KEY", Key::AccessKey)]
    {
        if let Some(value) = variable(name) {
            builder = builder.with_config(key, value);
        }
    }
    for (variable, value) in variables("AZURE_") {
        if let Ok(key) = variable.parse::<Key>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = variable("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    Ok(builder)
}

/// The settings of a connection string, as Azure's portal shows it.
fn connection_string(text: &str) -> Result<Vec<(Key, String)>, Error> {
    let mut parts = std::collections::BTreeMap::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            Error::invalid(
                "AZURE_STORAGE_CONNECTION_STRING is not one: it has a part without `=`",
                "copy it from the storage account's access keys",
            )
        })?;
        parts.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut take = |name: &str| parts.remove(name);
    let scheme = take("defaultendpointsprotocol").unwrap_or_else(|| "https".to_owned());
    let suffix = take("endpointsuffix").filter(|suffix| suffix != "core.windows.net");
    let account = take("accountname");
    let endpoint = take("blobendpoint").or_else(|| {
        suffix
            .zip(account.as_ref())
            .map(|(suffix, name)| format!("{scheme}://{name}.blob.{suffix}"))
    });
    let settings = [
        (Key::AccountName, account),
        (Key::AccessKey, take("accountkey")),
        (Key::SasKey, take("sharedaccesssignature")),
        (Key::Endpoint, endpoint.map(|endpoint| endpoint.trim_end_matches('/').to_owned())),
    ];
    Ok(settings.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

/// The machine's identity is asked for only where it is wanted.
fn check_credentials(builder: &MicrosoftAzureBuilder) -> Result<(), Error> {
    let has = |key| builder.get_config_value(&key).is_some();
    let says = |key| builder.get_config_value(&key).is_some_and(|value| is_true(&value));
    let named = has(Key::AccessKey)
        || has(Key::SasKey)
        || has(Key::Token)
        || has(Key::ClientId)
        || has(Key::MsiEndpoint)
        || has(Key::CredentialType)
        || says(Key::UseAzureCli)
        || says(Key::SkipSignature);
    if has(Key::AccountName) && named {
        return Ok(());
    }
    let missing = if has(Key::AccountName) { "are no credentials" } else { "is no account" };
    Err(Error::invalid(
        format!("there {missing} for Azure Blob Storage"),
        "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY \
         (AZURE_CREDENTIAL_TYPE=managed_identity takes the machine's)",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings() {
        let text = "DefaultEndpointsProtocol=http;AccountName=dev;AccountKey=a2V5==;\
                    BlobEndpoint=http://127.0.0.1:10000/dev/;";
        let found = connection_string(text).unwrap();
        assert_eq!(
            found,
            [
                (Key::AccountName, "dev".to_owned()),
                (Key::AccessKey, "a2V5==".to_owned()),
                (Key::Endpoint, "http://127.0.0.1:10000/dev".to_owned()),
            ]
        );
        let found = connection_string("AccountName=a;AccountKey=k;EndpointSuffix=example.cn");
        let endpoint = (Key::Endpoint, "https://a.blob.example.cn".to_owned());
        assert!(found.unwrap().contains(&endpoint));
        assert!(connection_string("nonsense").is_err());
    }
}
