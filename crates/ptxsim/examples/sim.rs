//! Runs a PTX file: `sim FILE.ptx --entry K --grid 4[,y,z] --block 128[,y,z] [--cluster 2[,y,z]] [--shared BYTES]
//! --args 'u32[128]=iota,i32=5' [--print 0] [--json FILE] [--seed N] [--no-checks]`.
//!
//! Exit status 0 when nothing was found, 1 when a check fired, 2 for bad input.

use std::process::ExitCode;
use tilewright_ptxsim::{Arguments, Launch, Options, Program};

fn three(s: &str) -> Result<[u32; 3], String> {
    let mut d = [1; 3];
    let parts: Vec<&str> = s.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("`{s}` has more than three sizes"));
    }
    for (d, p) in d.iter_mut().zip(&parts) {
        *d = p.trim().parse().map_err(|_| format!("`{p}` in `{s}` is no size"))?;
    }
    Ok(d)
}

fn run() -> Result<bool, String> {
    let mut args = std::env::args().skip(1);
    let (mut file, mut entry, mut text, mut print, mut json) = (None, None, String::new(), vec![], None);
    let mut launch = Launch {
        entry: String::new(),
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: None,
        shared_bytes: 0,
        params: vec![],
    };
    let mut options = Options::default();
    while let Some(a) = args.next() {
        let mut value = || args.next().ok_or(format!("`{a}` needs a value"));
        match a.as_str() {
            "--entry" => entry = Some(value()?),
            "--grid" => launch.grid = three(&value()?)?,
            "--block" => launch.block = three(&value()?)?,
            "--cluster" => launch.cluster = Some(three(&value()?)?),
            "--shared" => {
                launch.shared_bytes = value()?.parse().map_err(|_| "--shared takes a number of bytes")?
            }
            "--args" => text = value()?,
            "--print" => {
                print.push(value()?.parse::<usize>().map_err(|_| "--print takes an argument's number")?)
            }
            "--json" => json = Some(value()?),
            "--seed" => options.seed = value()?.parse().map_err(|_| "--seed takes a number")?,
            "--no-checks" => options.checks = false,
            f if !f.starts_with('-') && file.is_none() => file = Some(a),
            _ => return Err(format!("`{a}` is not known")),
        }
    }
    let file = file.ok_or("the PTX file is missing")?;
    let ptx = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let program = Program::parse(&ptx).map_err(|e| format!("{file}: {e}"))?;
    launch.entry = match entry.or_else(|| program.entries().next().map(str::to_string)) {
        Some(e) => e,
        None => return Err(format!("{file} has no entry")),
    };
    let mut arguments = Arguments::parse(&text).map_err(|e| e.to_string())?;
    launch.params = arguments.params();
    let report = arguments
        .with_memory(|_, memory| program.launch(&launch, memory, &options))
        .map_err(|e| format!("{file}: {e}"))?;
    for line in &report.output {
        print!("{line}");
    }
    for k in print {
        println!("{}", arguments.show(k, 1 << 20).ok_or(format!("there is no argument {k} to print"))?);
    }
    print!("{}", report.table());
    if let Some(f) = json {
        std::fs::write(&f, report.to_json()).map_err(|e| format!("{f}: {e}"))?;
    }
    for f in &report.findings {
        eprintln!("{f}\n");
    }
    Ok(report.findings.is_empty())
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}
