//! S3 and what is compatible with it. Credentials, in this order: the `AWS_` variables, a profile's
//! static keys, a web identity, a container's, the instance's own.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key};

use super::endpoint::Connection;
use super::patience::Connector;
use super::profile::{self, Profile};
use super::{Opened, is_true, once, patient, refused, variable, variables};
use crate::error::Error;

/// How directory buckets (S3 Express) are named. They list in no order.
const DIRECTORY_BUCKET: &str = "--x-s3";

/// The clients for a bucket.
///
/// # Errors
/// If the configuration lacks something or contradicts itself.
pub fn open(name: &str, connection: &Connection) -> Result<Opened, Error> {
    let connector = Connector::default();
    let mut builder = AmazonS3Builder::new()
        .with_config(Key::Client(ClientConfigKey::Timeout), super::NO_TIMEOUT)
        .with_config(Key::Client(ClientConfigKey::UserAgent), super::USER_AGENT);
    for (variable, value) in variables("AWS_") {
        if let Ok(key) = variable.parse::<Key>() {
            builder = builder.with_config(key, value);
        }
    }
    builder = with_profile(builder)?;
    if let Some(endpoint) = &connection.endpoint {
        builder = builder.with_config(Key::S3Endpoint, endpoint);
    }
    let get = |key| builder.get_config_value(&key);
    let endpoint = get(Key::S3Endpoint).or_else(|| get(Key::Endpoint));
    let configured = get(Key::Client(ClientConfigKey::AllowHttp)).is_some_and(|v| is_true(&v));
    let allow_http = connection.allows_http(endpoint.as_deref(), configured)?;
    let express = name.ends_with(DIRECTORY_BUCKET);
    if express && endpoint.is_none() {
        builder = builder.with_s3_express(true);
    }
    let builder = builder
        .with_config(Key::Client(ClientConfigKey::AllowHttp), allow_http.to_string())
        .with_bucket_name(name)
        .with_http_connector(connector);
    check_credentials(&builder)?;
    let build = |builder: AmazonS3Builder| -> Result<Arc<AmazonS3>, Error> {
        builder.build().map(Arc::new).map_err(|source| refused(&source))
    };
    let patient = build(builder.clone().with_retry(patient()))?;
    let credentials = patient.credentials().clone();
    let region = builder.get_config_value(&Key::Region);
    let once = build(builder.with_retry(once()).with_credentials(credentials))?;
    let address = endpoint.unwrap_or_else(|| {
        format!("s3.{}.amazonaws.com", region.as_deref().unwrap_or("us-east-1"))
    });
    Ok(Opened { pages: patient.clone(), patient, once, lists_in_order: !express, address })
}

/// Fills in what the variables leave open.
fn with_profile(builder: AmazonS3Builder) -> Result<AmazonS3Builder, Error> {
    let Some(profile) = Profile::load()? else { return Ok(builder) };
    let get = |key| builder.get_config_value(&key);
    let has_region = get(Key::Region).is_some();
    let has_endpoint = get(Key::Endpoint).is_some() || get(Key::S3Endpoint).is_some();
    let has_credentials = has_credentials(&builder);
    let mut builder = builder;
    if let Some(region) = profile.region.as_ref().filter(|_| !has_region) {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = profile.endpoint.as_ref().filter(|_| !has_endpoint) {
        builder = builder.with_endpoint(endpoint);
    }
    if has_credentials {
        return Ok(builder);
    }
    if let Some((id, secret)) = &profile.keys {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = &profile.token {
            builder = builder.with_token(token);
        }
    } else {
        profile.check()?;
    }
    Ok(builder)
}

/// Whether the variables name credentials.
fn has_credentials(builder: &AmazonS3Builder) -> bool {
    let has = |key| builder.get_config_value(&key).is_some();
    has(Key::AccessKeyId)
        || has(Key::SecretAccessKey)
        || (has(Key::WebIdentityTokenFile) && has(Key::RoleArn))
        || has(Key::ContainerCredentialsRelativeUri)
        || (has(Key::ContainerCredentialsFullUri) && has(Key::ContainerAuthorizationTokenFile))
        || builder.get_config_value(&Key::SkipSignature).is_some_and(|value| is_true(&value))
}

/// Without any, the instance's own are asked for, unless that is ruled out.
fn check_credentials(builder: &AmazonS3Builder) -> Result<(), Error> {
    let ruled_out = variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| is_true(&value));
    if ruled_out && !has_credentials(builder) {
        return Err(Error::invalid(
            format!("there are no credentials for S3 ({} has no keys either)", profile::place()),
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        ));
    }
    Ok(())
}
