//! Random numbers for guests: functions of what is recorded.
//!
//! Predictable to whoever holds the log and the component, so never for keys. Nothing here asks the
//! machine for randomness. The generator is SHA-256 over a key and a counter: the same bytes on
//! every machine.

use pugmark_log::{Digest, SessionId};

use super::state::Phase;

/// The key of secure random in `decide` and in commands: from the session that records the step,
/// the digest of the log that the step sees, and the component.
#[must_use]
pub fn secure_seed(session: SessionId, log: Digest, component: Digest) -> [u8; 32] {
    let session = session.to_string();
    derive("secure", &[session.as_bytes(), log.as_bytes(), component.as_bytes()])
}

/// A key for `purpose` from `parts`, each with its length, so that no two lists of parts are one.
fn derive(purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut bytes = b"pugmark sandbox random 1".to_vec();
    for part in [purpose.as_bytes()].iter().chain(parts) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    *Digest::of(&bytes).as_bytes()
}

/// An endless sequence of bytes from a key.
#[derive(Debug)]
pub struct Generator {
    /// The key, and the number of the next block.
    input: [u8; 40],
    block: [u8; 32],
    used: usize,
}

impl Generator {
    /// The sequence of `key`, from its start.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        let mut input = [0; 40];
        input[..32].copy_from_slice(&key);
        Self { input, block: [0; 32], used: 32 }
    }

    /// Fills `out` with the next bytes.
    pub fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.used == self.block.len() {
                self.refill();
            }
            let count = out.len().min(self.block.len() - self.used);
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&self.block[self.used..self.used + count]);
            self.used += count;
            out = later;
        }
    }

    /// The next `N` bytes.
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// The next eight bytes, as a little-endian number.
    pub fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn refill(&mut self) {
        self.block = *Digest::of(&self.input).as_bytes();
        self.used = 0;
        for byte in &mut self.input[32..] {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
}

/// The generators of one guest. They start when they are first asked: most calls never ask.
#[derive(Debug)]
pub struct Random {
    component: Digest,
    secure_seed: [u8; 32],
    phase: Phase,
    secure: Option<Generator>,
    insecure: Option<Generator>,
}

impl Random {
    /// Generators for an instance of `component`; `secure_seed` is from [`secure_seed`].
    #[must_use]
    pub fn new(component: Digest, secure_seed: [u8; 32]) -> Self {
        let phase = Phase::Instantiate;
        Self { component, secure_seed, phase, secure: None, insecure: None }
    }

    /// Draws from another step's key, from [`secure_seed`], from the next call on.
    pub fn reseed(&mut self, secure_seed: [u8; 32]) {
        self.secure_seed = secure_seed;
    }

    /// Starts both sequences afresh for the next call, so that what a call draws depends on no
    /// other call.
    pub fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.secure = None;
        self.insecure = None;
    }

    /// What `wasi:random/random` draws from. Until `decide`, it depends on the component and the
    /// position alone: an instance that was kept must be in the state of one that starts over.
    pub fn secure(&mut self) -> &mut Generator {
        let generator = self.secure.take().unwrap_or_else(|| {
            Generator::new(match self.phase {
                Phase::Instantiate | Phase::Fold { .. } => self.key("secure before decide"),
                Phase::Decide | Phase::Command => self.secure_seed,
            })
        });
        self.secure.insert(generator)
    }

    /// What `wasi:random/insecure` draws from: it depends on the component and the call alone.
    pub fn insecure(&mut self) -> &mut Generator {
        let generator = self.insecure.take();
        let generator = generator.unwrap_or_else(|| Generator::new(self.key("insecure")));
        self.insecure.insert(generator)
    }

    fn key(&self, purpose: &str) -> [u8; 32] {
        let (call, position) = match self.phase {
            Phase::Instantiate => ("instantiate", 0),
            Phase::Fold { position } => ("fold", position),
            Phase::Decide => ("decide", 0),
            Phase::Command => ("command", 0),
        };
        derive(purpose, &[self.component.as_bytes(), call.as_bytes(), &position.to_le_bytes()])
    }

    /// What `wasi:random/insecure-seed` answers: the same in every call of a component.
    #[must_use]
    pub fn insecure_seed(&self) -> (u64, u64) {
        let mut generator = Generator::new(derive("insecure seed", &[self.component.as_bytes()]));
        (generator.next_u64(), generator.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(generator: &mut Generator) -> String {
        hex::encode(generator.array::<8>())
    }

    fn random() -> Random {
        Random::new(Digest::of(b"component"), [7; 32])
    }

    #[test]
    fn golden_bytes_of_the_generator() {
        let mut generator = Generator::new([7; 32]);
        let mut bytes = [0; 72];
        generator.fill(&mut bytes[..5]);
        generator.fill(&mut bytes[5..]);
        let hex = hex::encode(bytes);
        assert_eq!(
            hex,
            "7c87c3b8f2da19fe841e74b9bbcbd5109643f0ff2214601b5129210de8082bdaaec6c4d3f45ed9fb525bbca6c8dd10bb423e77a3c4f050160ad0ca349a4c7e502291d13bc3ffe39c"
        );
    }

    #[test]
    fn golden_bytes_of_every_call() {
        let mut random = random();
        let mut seen = Vec::new();
        for phase in [
            Phase::Instantiate,
            Phase::Fold { position: 0 },
            Phase::Fold { position: 1 },
            Phase::Decide,
            Phase::Command,
        ] {
            random.begin(phase);
            seen.push((draw(random.secure()), draw(random.insecure())));
        }
        let golden = [
            ("2965e88628599df2", "0eae54d0f5bc9b13"),
            ("d052c13a23d4eb2c", "5646a31e721f782f"),
            ("5732230ee6f5c2bf", "cfde0f5c05fedb0d"),
            ("7c87c3b8f2da19fe", "3716176f6433ee7c"),
            ("7c87c3b8f2da19fe", "d8cbebe013bb7f60"),
        ];
        assert_eq!(seen, golden.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(random.insecure_seed(), (0x555e_362c_e407_1e14, 0xa70a_0a30_58a9_33c5));
    }

    #[test]
    fn golden_seed() {
        let session = "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap();
        let seed = secure_seed(session, Digest::of(b"log"), Digest::of(b"component"));
        assert_eq!(
            Digest::from_bytes(seed).hex(),
            "6daedf74508ef2131985d5faf4a0e424aa01d682784e0ef06ecef9cd733f8b61"
        );
    }

    #[test]
    fn a_call_draws_what_it_draws_whatever_came_before() {
        let mut random = random();
        random.begin(Phase::Fold { position: 3 });
        let first = (draw(random.secure()), draw(random.insecure()));
        random.begin(Phase::Decide);
        draw(random.secure());
        random.begin(Phase::Fold { position: 3 });
        assert_eq!((draw(random.secure()), draw(random.insecure())), first);
    }
}
