//! The handler as a subprocess.

fn main() -> std::process::ExitCode {
    pugmark_guest::run::<chat::Chat>()
}
