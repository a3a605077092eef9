//! Header fields.

use wasmtime::component::Resource;

use super::bindings::wasi::http::types::{self, HeaderError};
use super::held::{Charge, HttpState};
use super::syntax::{is_forbidden, is_name, is_value};
use crate::sandbox::limits::HttpExceeded;
use crate::sandbox::state::GuestState;

/// What a field takes on the host's side besides its bytes.
const OVERHEAD: u64 = 64;

type Entry = (String, Vec<u8>);

/// What `set` and its like give.
type Changed = wasmtime::Result<Result<(), HeaderError>>;

/// Fields of a request or a response, in order.
pub struct Fields {
    entries: Vec<Entry>,
    is_fixed: bool,
    charge: Charge,
}

impl Fields {
    /// Fields within the limits.
    pub(super) fn new(
        entries: Vec<Entry>,
        is_fixed: bool,
        state: &HttpState,
    ) -> Result<Self, HttpExceeded> {
        let charge = state.charge(checked_size(&entries, state)?)?;
        Ok(Self { entries, is_fixed, charge })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Vec<u8>> {
        let named = move |(own, _): &&Entry| own.eq_ignore_ascii_case(name);
        self.entries.iter().filter(named).map(|(_, value)| value)
    }
}

fn checked_size(entries: &[Entry], state: &HttpState) -> Result<u64, HttpExceeded> {
    let size = |(name, value): &Entry| (name.len() + value.len()) as u64 + OVERHEAD;
    let size: u64 = entries.iter().map(size).sum();
    let limit = state.limits.head_bytes;
    if size > limit { Err(HttpExceeded::Head { limit }) } else { Ok(size) }
}

fn check(name: &str, values: &[Vec<u8>]) -> Result<(), HeaderError> {
    if !is_name(name) || !values.iter().all(|value| is_value(value)) {
        Err(HeaderError::InvalidSyntax)
    } else if is_forbidden(name) {
        Err(HeaderError::Forbidden)
    } else {
        Ok(())
    }
}

impl GuestState {
    /// A copy of fields, as a new handle.
    pub(super) fn copy_of_fields(
        &mut self,
        entries: Vec<Entry>,
        is_fixed: bool,
    ) -> wasmtime::Result<Resource<Fields>> {
        let fields = Fields::new(entries, is_fixed, &self.http)?;
        self.hand_out(fields)
    }

    /// Takes fields out of their handle.
    pub(super) fn take_fields(&mut self, handle: Resource<Fields>) -> wasmtime::Result<Fields> {
        Ok(self.table.delete(handle)?)
    }

    fn change_fields(
        &mut self,
        handle: &Resource<Fields>,
        change: impl FnOnce(&mut Vec<Entry>),
    ) -> Changed {
        let fields = self.table.get_mut(handle)?;
        if fields.is_fixed {
            return Ok(Err(HeaderError::Immutable));
        }
        change(&mut fields.entries);
        let size = checked_size(&fields.entries, &self.http)?;
        fields.charge.resize(size)?;
        Ok(Ok(()))
    }
}

impl types::HostFields for GuestState {
    fn new(&mut self) -> wasmtime::Result<Resource<Fields>> {
        self.copy_of_fields(Vec::new(), false)
    }

    fn from_list(
        &mut self,
        entries: Vec<Entry>,
    ) -> wasmtime::Result<Result<Resource<Fields>, HeaderError>> {
        for (name, value) in &entries {
            if let Err(error) = check(name, std::slice::from_ref(value)) {
                return Ok(Err(error));
            }
        }
        self.copy_of_fields(entries, false).map(Ok)
    }

    fn get(&mut self, handle: Resource<Fields>, name: String) -> wasmtime::Result<Vec<Vec<u8>>> {
        Ok(self.table.get(&handle)?.values(&name).cloned().collect())
    }

    fn has(&mut self, handle: Resource<Fields>, name: String) -> wasmtime::Result<bool> {
        Ok(self.table.get(&handle)?.values(&name).next().is_some())
    }

    fn set(&mut self, handle: Resource<Fields>, name: String, values: Vec<Vec<u8>>) -> Changed {
        if let Err(error) = check(&name, &values) {
            return Ok(Err(error));
        }
        self.change_fields(&handle, |entries| {
            entries.retain(|(own, _)| !own.eq_ignore_ascii_case(&name));
            entries.extend(values.into_iter().map(|value| (name.clone(), value)));
        })
    }

    fn delete(&mut self, handle: Resource<Fields>, name: String) -> Changed {
        if let Err(error) = check(&name, &[]) {
            return Ok(Err(error));
        }
        self.change_fields(&handle, |entries| {
            entries.retain(|(own, _)| !own.eq_ignore_ascii_case(&name));
        })
    }

    fn append(&mut self, handle: Resource<Fields>, name: String, value: Vec<u8>) -> Changed {
        if let Err(error) = check(&name, std::slice::from_ref(&value)) {
            return Ok(Err(error));
        }
        self.change_fields(&handle, |entries| entries.push((name, value)))
    }

    fn entries(&mut self, handle: Resource<Fields>) -> wasmtime::Result<Vec<Entry>> {
        Ok(self.table.get(&handle)?.entries.clone())
    }

    fn clone(&mut self, handle: Resource<Fields>) -> wasmtime::Result<Resource<Fields>> {
        let entries = self.table.get(&handle)?.entries.clone();
        self.copy_of_fields(entries, false)
    }

    fn drop(&mut self, handle: Resource<Fields>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}
