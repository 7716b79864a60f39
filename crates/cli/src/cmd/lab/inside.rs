//! `lab run --trace` and `--viz`: one run that is looked into.

use crate::args::{Common, LabRunArgs};
use crate::cmd::viz;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_core::events::{EventSink, TraceEvent, Tracer};
use braidcast_lab::Job;
use braidcast_trace::{QlogHeader, QlogWriter};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one host told. Simulated time waits for the disk, so nothing is left out.
struct HostTrace {
    state: Mutex<State>,
}

struct State {
    writer: QlogWriter<BufWriter<File>>,
    failed: Option<io::Error>,
}

impl HostTrace {
    fn create(path: &Path, title: &str, host: &str, simulated: bool) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let writer = QlogWriter::new(file, &QlogHeader { title, vantage: host, wall_clock: "", simulated })?;
        Ok(Self { state: Mutex::new(State { writer, failed: None }) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.failed.take().map_or(Ok(()), Err)?;
        state.writer.flush()
    }
}

impl EventSink for HostTrace {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        let mut state = self.lock();
        if state.failed.is_none() {
            state.failed = state.writer.event(now, connection, event).err();
        }
    }
}

/// The traces of a run that goes on.
pub(super) struct Traces {
    /// `run.trace`, which no host writes, but whose name all have a part of.
    base: PathBuf,
    /// By host, the sender of each flow before its receiver.
    hosts: Vec<(String, PathBuf, Arc<HostTrace>)>,
}

/// What shows what happened inside.
#[derive(Serialize)]
pub(super) struct Seen {
    /// One for each host.
    traces: Vec<PathBuf>,
    /// One for each flow.
    pages: Vec<PathBuf>,
}

impl Seen {
    /// The pages if there are any, else the traces.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        if self.pages.is_empty() { self.traces.iter() } else { self.pages.iter() }
    }
}

/// The first run of the only job, and where its hosts write to.
pub(super) fn traced<'a>(args: &LabRunArgs, common: &Common, mut jobs: Vec<Job<'a>>) -> Outcome<(Job<'a>, Traces)> {
    let (Some(job), []) = (jobs.pop(), &jobs[..]) else {
        return Err(Failure::usage("--trace and --viz look into one run", "name one experiment"));
    };
    let name = &job.scenario().name;
    let base = args.trace.clone().unwrap_or_else(|| args.results.join(format!("{name}.trace")));
    let refused = |path: &Path, e: io::Error| {
        Failure::new(format!("cannot write the trace {}: {e}", path.display()), "choose another file for --trace")
    };
    if args.trace.is_none() {
        std::fs::create_dir_all(&args.results).map_err(|e| refused(&args.results, e))?;
    }
    let (of, title) = (job.runs(), job.first_command().unwrap_or_default());
    let mut hosts = Vec::new();
    let job = job.traced(|host| -> Outcome<Tracer> {
        let path = beside(&base, host);
        let trace = HostTrace::create(&path, &title, host, !args.real_time).map_err(|e| refused(&path, e))?;
        let trace = Arc::new(trace);
        hosts.push((host.to_owned(), path, Arc::clone(&trace)));
        Ok(Tracer::new(trace))
    })?;
    if hosts.is_empty() {
        return Err(Failure::usage(
            "there is nothing to trace: that run has no flow over SCTP or DCCP",
            "choose another variant or experiment",
        ));
    }
    if of > 1 && !common.quiet {
        say!("looking into one of {of} runs, which --variant, --param and --seed choose: {title}");
    }
    Ok((job, Traces { base, hosts }))
}

/// `run.trace` for `PART`: `run.PART.trace`.
fn beside(base: &Path, part: &str) -> PathBuf {
    let extension = base.extension().map_or_else(|| "trace".into(), |it| it.to_string_lossy().into_owned());
    base.with_extension(format!("{part}.{extension}"))
}

impl Traces {
    /// The run is over: ends the files, and makes the pages if they are wanted.
    pub(super) fn finish(self, args: &LabRunArgs, common: &Common) -> Outcome<Seen> {
        for (_, path, trace) in &self.hosts {
            trace.finish().map_err(|e| {
                let what = format!("the trace {} cannot be written: {e}", path.display());
                Failure::new(what, "make room, or choose another file with --trace")
            })?;
        }
        let live = Live::new(common.quiet);
        let traces: Vec<PathBuf> = self.hosts.iter().map(|(_, path, _)| path.clone()).collect();
        let mut pages = Vec::new();
        if args.viz {
            for ends in self.hosts.chunks(2) {
                let flow = ends[0].0.strip_suffix(".sender").unwrap_or(&ends[0].0);
                let page = self.base.with_extension(format!("{flow}.html"));
                let paths = ends.iter().map(|(_, path, _)| path.clone()).collect();
                pages.push(viz::show(paths, viz::Form::Page(Some(&page)), None, &live)?.page);
            }
            if args.open {
                pages.iter().for_each(|page| viz::open(page, &live));
            }
        }
        Ok(Seen { traces, pages })
    }
}
