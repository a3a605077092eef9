//! The benchmark: `make bench`. Prints a table of ratios, each of two things measured in turn in
//! this one run, and figures without a counterpart. Asserts nothing: a machine's speed is no test.

mod bundle;
mod fork;
mod growth;
mod instantiate;
mod memory;
mod processes;
mod replay;
mod scale;
mod start;
mod step;
mod support;
mod warm;

use std::path::PathBuf;

use clap::Parser;

use crate::support::{Row, Setup};

/// Measure pugmark against what it stands on.
#[derive(Parser)]
struct Cli {
    /// The release build of pugmark
    #[arg(long, default_value = "target/release/pugmark")]
    program: PathBuf,

    /// Where the guests were built
    #[arg(long, default_value = "target/guests/out")]
    guests: PathBuf,

    /// A component of 15 MB or more; that part is left out without it
    #[arg(long)]
    large_component: Option<PathBuf>,

    /// Where buckets are made: on the disk to be measured, not in memory
    #[arg(long, default_value = "target/bench")]
    folder: PathBuf,

    /// Only these parts, by their letters
    #[arg(long, default_value = "abcdefghijk")]
    only: String,
}

/// A part's letter, and what measures it.
type Part = (char, fn(&Setup) -> Vec<Row>);

fn main() {
    let cli = Cli::parse();
    std::fs::create_dir_all(&cli.folder).expect("the folder can be made");
    let absolute = |path: &PathBuf| std::path::absolute(path).expect("there is a current folder");
    let setup = Setup {
        program: absolute(&cli.program),
        guests: absolute(&cli.guests),
        large_component: cli.large_component.as_ref().map(absolute),
        folder: absolute(&cli.folder),
    };
    let parts: [Part; 11] = [
        ('a', step::measure),
        ('b', growth::measure),
        ('c', fork::measure),
        ('d', processes::measure),
        ('e', instantiate::measure),
        ('f', memory::measure),
        ('g', start::measure),
        ('h', scale::measure),
        ('i', replay::measure),
        ('j', bundle::measure),
        ('k', warm::measure),
    ];
    println!("| part | what | ours | against | ratio | aim |");
    println!("|---|---|---|---|---|---|");
    for (letter, measure) in parts {
        if cli.only.contains(letter) {
            for row in measure(&setup) {
                println!("| {letter} | {row} |");
            }
        }
    }
}
