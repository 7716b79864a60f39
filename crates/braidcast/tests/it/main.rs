//! Tests of the program as its users run it, in one binary: linked once, and run side by side.

mod baresip;
mod certificates;
mod common;
mod config;
mod demo;
mod docs;
mod emulate;
mod encode;
mod failover;
mod figures;
mod help;
mod identities;
mod interfaces;
mod lab;
mod live;
mod obs;
mod on_path;
mod pcap;
mod perf;
mod service;
mod sessions;
mod survey;
mod trace;
mod transfer;
mod tunnel;
mod wrong_use;
