//! Prototype: `proto lab run FILE... --runs N --seed S --json [--variant V]`.
use braidcast_lab::{Job, Request, Scenario};
use core::sync::atomic::AtomicBool;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|it| it == name).and_then(|at| args.get(at + 1).cloned());
    let files: Vec<&String> = args.iter().filter(|it| it.ends_with(".toml")).collect();
    let request = Request {
        runs: value("--runs").map(|it| it.parse().unwrap()),
        seed: value("--seed").map_or(1, |it| it.parse().unwrap()),
        variant: value("--variant"),
        ..Request::default()
    };
    let mut rows = Vec::new();
    let set = value("--set").unwrap_or_default();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let text = if set.is_empty() { text } else { text.replacen("[live]\n", &format!("[live]\n{set}\n"), 1) };
        let scenario = Scenario::read(file, &text, std::path::Path::new(file).parent().unwrap())
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let job = Job::new(&scenario, &request).unwrap_or_else(|error| panic!("{file}: {error}"));
        let results = job.run(&AtomicBool::new(false), &|| ());
        rows.extend(results.rows);
    }
    println!("{}", serde_json::to_string(&rows).unwrap());
}
