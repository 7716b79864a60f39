//! quick DIR --variant all --runs N: runs all scenario files of a directory, prints one line each.
use braidcast_lab::{Job, Request, Scenario};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|it| it == name).and_then(|at| args.get(at + 1).cloned());
    let mut files: Vec<String> = Vec::new();
    for it in args.iter().take_while(|it| !it.starts_with("--")) {
        if it.ends_with(".toml") { files.push(it.clone()); continue; }
        files.extend(std::fs::read_dir(it).unwrap().map(|f| f.unwrap().path().to_str().unwrap().to_owned()).filter(|it| it.ends_with(".toml")));
    }
    files.sort();
    let set = value("--set").unwrap_or_default();
    let threads: usize = value("--threads").map_or(2, |it| it.parse().unwrap());
    let next = AtomicUsize::new(0);
    let out = Mutex::new(Vec::new());
    std::thread::scope(|scope| for _ in 0..threads { scope.spawn(|| {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = std::fs::read_to_string(file).unwrap();
            let text = if set.is_empty() { text } else { text.replacen("[live]\n", &format!("[live]\n{set}\n"), 1) };
            let seed = text.lines().find_map(|l| l.split_once("--seed ")).and_then(|(_, s)| s.split(|c: char| !c.is_ascii_digit()).next().and_then(|s| s.parse().ok())).or(value("--seed").map(|it| it.parse().unwrap())).unwrap_or(1);
            let request = Request { runs: value("--runs").map(|it| it.parse().unwrap()), seed, variant: value("--variant"), ..Request::default() };
            let scenario = Scenario::read(file, &text, std::path::Path::new(file).parent().unwrap()).unwrap_or_else(|e| panic!("{file}: {e}"));
            let job = Job::new(&scenario, &request).unwrap_or_else(|e| panic!("{file}: {e}"));
            let results = job.run(&AtomicBool::new(false), &|| ());
            for why in &results.lost_runs { eprintln!("{file}: {why}"); }
            out.lock().unwrap().extend(results.rows.into_iter().map(|row| (file.clone(), row)));
        }
    }); });
    let out = out.into_inner().unwrap();
    println!("{}", serde_json::to_string(&out).unwrap());
}
