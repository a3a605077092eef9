//! An engine that sees no clock and no chance while it is initialised.
//!
//! What a module's memory is after its initialisation becomes part of the component, and with it the
//! time and the random numbers that it asked for: no two builds would be the same. So its calls for
//! them are led to functions that always answer the same, and led back when it has been initialised.

use wasm_encoder::{BlockType, CodeSection, Encode as _, Function, FunctionSection};
use wasm_encoder::{Instruction, MemArg, Module, RawSection};
use wasmparser::{FunctionBody, Operator, Parser, Payload, TypeRef};

/// WASI 0.1, by which the engine is given time and chance.
const PREVIEW1: &str = "wasi_snapshot_preview1";

/// The time while it is initialised: 2000-01-01T00:00:00Z, in nanoseconds.
const TIME_NS: i64 = 946_684_800_000_000_000;

/// Why a module cannot be treated so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the engine's module cannot be understood")]
    Invalid(#[from] wasmparser::BinaryReaderError),
    #[error("{0} changed the code of the engine's module")]
    Changed(&'static str),
    #[error("the engine's module is too large")]
    TooLarge(#[from] std::num::TryFromIntError),
}

/// A section: its number, and what it holds.
type Section<'a> = (u8, &'a [u8]);

/// The section of functions' types.
const FUNCTIONS: u8 = 3;
/// The section of functions' code.
const CODE: u8 = 10;

/// The module with its calls for time and random numbers led elsewhere.
///
/// # Errors
/// If it is not a valid module.
pub fn freeze(module: &[u8]) -> Result<Vec<u8>, Error> {
    let parts = Parts::read(module)?;
    let mut functions = FunctionSection::new();
    parts.types.iter().for_each(|of| {
        functions.function(*of);
    });
    let mut led = Vec::new();
    let first = parts.imported + u32::try_from(parts.types.len())?;
    for (at, (import, of, function)) in (first..).zip(parts.calls()) {
        functions.function(of);
        led.push((import, at, function));
    }
    let mut code = CodeSection::new();
    for body in &parts.bodies {
        code.raw(&redirected(body, &led)?);
    }
    for (_, _, function) in &led {
        code.function(function);
    }
    let mut frozen = Module::new();
    for (id, data) in &parts.sections {
        match *id {
            FUNCTIONS => frozen.section(&functions),
            CODE => frozen.section(&code),
            id => frozen.section(&RawSection { id, data }),
        };
    }
    Ok(frozen.finish())
}

/// The module that `frozen` was initialised to, with the functions of `module` again.
///
/// # Errors
/// If the functions of `initialized` are no longer those of `frozen`.
pub fn thaw(module: &[u8], frozen: &[u8], initialized: &[u8]) -> Result<Vec<u8>, Error> {
    let (module, frozen) = (sections(module)?, sections(frozen)?);
    let of = |sections: &[Section<'_>], wanted| {
        sections.iter().find(|(id, _)| *id == wanted).map(|(_, data)| data.to_vec())
    };
    let mut thawed = Module::new();
    for (id, data) in sections(initialized)? {
        if id != FUNCTIONS && id != CODE {
            thawed.section(&RawSection { id, data });
            continue;
        }
        if of(&frozen, id).as_deref() != Some(data) {
            return Err(Error::Changed("wizer"));
        }
        let data = of(&module, id).unwrap_or_default();
        thawed.section(&RawSection { id, data: &data });
    }
    Ok(thawed.finish())
}

/// What of a module matters here.
struct Parts<'a> {
    sections: Vec<Section<'a>>,
    /// How many functions are imported.
    imported: u32,
    /// The imports that are led elsewhere, if they are there: index, type, and what is called then.
    time: Option<(u32, u32)>,
    random: Option<(u32, u32)>,
    /// The types of the functions that it has itself.
    types: Vec<u32>,
    bodies: Vec<FunctionBody<'a>>,
}

impl<'a> Parts<'a> {
    fn read(module: &'a [u8]) -> Result<Self, Error> {
        let mut parts = Self {
            sections: sections(module)?,
            imported: 0,
            time: None,
            random: None,
            types: Vec::new(),
            bodies: Vec::new(),
        };
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        let TypeRef::Func(of) = import.ty else { continue };
                        let known = (import.module == PREVIEW1).then_some((parts.imported, of));
                        match import.name {
                            "clock_time_get" => parts.time = known.or(parts.time),
                            "random_get" => parts.random = known.or(parts.random),
                            _ => {}
                        }
                        parts.imported += 1;
                    }
                }
                Payload::FunctionSection(types) => {
                    parts.types = types.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::CodeSectionEntry(body) => parts.bodies.push(body),
                _ => {}
            }
        }
        Ok(parts)
    }

    /// The imports that are led elsewhere, their types, and the functions that answer instead.
    fn calls(&self) -> Vec<(u32, u32, Function)> {
        let time = self.time.map(|(index, of)| (index, of, same_time()));
        let random = self.random.map(|(index, of)| (index, of, same_numbers()));
        time.into_iter().chain(random).collect()
    }
}

/// All sections, in order.
fn sections(module: &[u8]) -> Result<Vec<Section<'_>>, Error> {
    let mut sections = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Some((id, range)) = payload?.as_section() {
            sections.push((id, &module[range]));
        }
    }
    Ok(sections)
}

/// A function's body in which calls of some functions are calls of others.
fn redirected(body: &FunctionBody<'_>, led: &[(u32, u32, Function)]) -> Result<Vec<u8>, Error> {
    let (bytes, start) = (body.as_bytes(), body.range().start);
    let mut redirected = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        let (operator, at) = operators.read_with_offset()?;
        let Operator::Call { function_index } = operator else { continue };
        let Some((_, to, _)) = led.iter().find(|(from, ..)| *from == function_index) else {
            continue;
        };
        redirected.extend(&bytes[copied..at - start]);
        Instruction::Call(*to).encode(&mut redirected);
        copied = operators.original_position() - start;
    }
    redirected.extend(&bytes[copied..]);
    Ok(redirected)
}

/// Answers the same time, whatever the clock: (clock, precision, address) -> 0.
fn same_time() -> Function {
    let mut function = Function::new([]);
    let mut instructions = function.instructions();
    instructions.local_get(2).i64_const(TIME_NS).i64_store(at_zero(3)).i32_const(0).end();
    function
}

/// Answers bytes that follow from where they stand: (address, count) -> 0. Not all of them are the
/// same, nor zero: whoever looks for better ones would look for ever.
fn same_numbers() -> Function {
    let mut function = Function::new([]);
    let mut instructions = function.instructions();
    instructions.block(BlockType::Empty).loop_(BlockType::Empty);
    instructions.local_get(1).i32_eqz().br_if(1);
    instructions.local_get(1).i32_const(1).i32_sub().local_set(1);
    instructions.local_get(0).local_get(1).i32_add();
    instructions.local_get(1).i32_const(167).i32_mul().i32_const(13).i32_add();
    instructions.i32_store8(at_zero(0)).br(0).end().end().i32_const(0).end();
    function
}

fn at_zero(align: u32) -> MemArg {
    MemArg { offset: 0, align, memory_index: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a module looks like: all but its code and types.
    fn module() -> Vec<u8> {
        wat::parse_str(
            r#"(module
                (import "wasi_snapshot_preview1" "clock_time_get"
                    (func $time (param i32 i64 i32) (result i32)))
                (import "other" "random_get" (func $other (param i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "random_get"
                    (func $random (param i32 i32) (result i32)))
                (memory (export "memory") 1)
                (func (export "f") (local i64)
                    (drop (call $time (i32.const 0) (i64.const 1) (i32.const 8)))
                    (drop (call $other (i32.const 16) (i32.const 4)))
                    (drop (call $random (i32.const 16) (i32.const 4))))
                (func (export "g") (call 3)))"#,
        )
        .unwrap()
    }

    fn calls(module: &[u8]) -> Vec<u32> {
        let parts = Parts::read(module).unwrap();
        let operators = parts
            .bodies
            .iter()
            .flat_map(|body| body.get_operators_reader().unwrap().into_iter().map(Result::unwrap));
        let called = operators.filter_map(|operator| match operator {
            Operator::Call { function_index } => Some(function_index),
            _ => None,
        });
        called.collect()
    }

    #[test]
    fn calls_are_led_elsewhere_and_back() {
        let module = module();
        let frozen = freeze(&module).unwrap();
        wasmparser::validate(&frozen).unwrap();
        assert_eq!(calls(&module), [0, 1, 2, 3]);
        assert_eq!(calls(&frozen), [5, 1, 6, 3]);
        assert_eq!(thaw(&module, &frozen, &frozen).unwrap(), module);
    }

    #[test]
    fn code_that_was_changed_is_refused() {
        let module = module();
        let frozen = freeze(&module).unwrap();
        assert!(matches!(thaw(&module, &frozen, &module), Err(Error::Changed(_))));
        assert!(matches!(freeze(b"\0asm\x01\0\0\0\x0a"), Err(Error::Invalid(_))));
    }
}
