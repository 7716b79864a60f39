//! Ends that are known by certificates of a PKI.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes and sockets")]

use crate::common::{Ran, Running, Test, free_port, noise};
use std::path::Path;
use std::process::Command;

/// What an authority's certificate says of itself, for `certtool`.
const AUTHORITY: &str = "cn = \"an authority\"\nca\ncert_signing_key\nexpiration_days = 3650\n";
/// What an end's certificate says when it is good, but for its names.
const GOOD: &str = "cn = \"an end\"\ntls_www_server\ntls_www_client\nexpiration_days = 365\n";
const OLD: &str = "cn = \"an end\"\ntls_www_server\ntls_www_client\n\
    activation_date = \"2020-01-01 00:00:00\"\nexpiration_date = \"2020-02-01 00:00:00\"\n";
const HERE: &str = "ip_address = 127.0.0.1\n";

fn certtool(dir: &Path, args: &str) -> String {
    let out = Command::new("certtool").current_dir(dir).args(args.split(' ')).output().unwrap();
    assert!(out.status.success(), "certtool {args}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Makes NAME.key and NAME.pem, signed by `authority` or by itself.
pub(crate) fn certificate(dir: &Path, name: &str, says: &str, authority: Option<&str>) {
    std::fs::write(dir.join("template"), says).unwrap();
    certtool(dir, &format!("--generate-privkey --key-type ecdsa --no-text --outfile {name}.key"));
    let how = authority.map_or_else(
        || "--generate-self-signed".into(),
        |ca| format!("--generate-certificate --load-ca-certificate {ca}.pem --load-ca-privkey {ca}.key"),
    );
    certtool(dir, &format!("{how} --load-privkey {name}.key --template template --no-text --outfile {name}.pem"));
}

pub(crate) fn is_installed() -> bool {
    let there = Command::new("certtool").arg("--version").output().is_ok_and(|out| out.status.success());
    assert!(there || std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "certtool is not installed");
    if !there {
        eprintln!("skipped: certtool is not installed (tools/setup.sh test installs it)");
    }
    there
}

/// Two authorities, and ends of the first.
fn pki() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let all = dir.path();
    certificate(all, "ca", AUTHORITY, None);
    certificate(all, "other-ca", AUTHORITY, None);
    certificate(all, "home", &format!("{GOOD}{HERE}"), Some("ca"));
    certificate(all, "elsewhere", &format!("{GOOD}dns_name = elsewhere.example\n"), Some("ca"));
    certificate(all, "camera", GOOD, Some("ca"));
    certificate(all, "old", OLD, Some("ca"));
    certificate(all, "stranger", GOOD, Some("other-ca"));
    std::fs::write(all.join("in.bin"), noise(5000)).unwrap();
    dir
}

fn with(name: &str) -> String {
    format!("--cert {name}.pem --cert-key {name}.key --ca ca.pem")
}

/// `receive` with some flags, and what `send` with others comes to.
fn sent(dir: &Path, receive: &str, send: &str) -> (Running, Ran) {
    let port = free_port();
    let receiver =
        Running::start(dir, &format!("receive 127.0.0.1:{port} out.bin --overwrite {receive}")).wait_for("listening");
    (receiver, Running::start(dir, &format!("send in.bin --to 127.0.0.1:{port} {send}")).finish())
}

#[test]
fn certificates_of_one_authority_let_both_in_and_others_are_refused_in_a_sentence() {
    if !is_installed() {
        return;
    }
    let dir = pki();
    let (receiver, ran) = sent(dir.path(), &with("home"), &with("camera"));
    ran.says(0, &["authenticated by its certificate"]);
    receiver.finish().says(0, &["authenticated by its certificate"]);
    assert_eq!(std::fs::read(dir.path().join("out.bin")).unwrap(), noise(5000));
    for (receive, send, at_receiver, at_sender) in [
        (
            with("elsewhere"),
            with("camera"),
            "the other end says that our certificate is not for",
            "the other end's certificate is not for 127.0.0.1",
        ),
        (
            with("home"),
            with("old"),
            "the other end's certificate has expired, by the clock",
            "the other end says that our certificate has expired, by the clock",
        ),
        (
            with("home"),
            with("stranger"),
            "the other end's certificate is not of an authority",
            "the other end says that our certificate is not of an authority",
        ),
        (
            with("home"),
            String::new(),
            "this end has a certificate, and the other end has none",
            "the other end has a certificate, and this end has none",
        ),
        (
            "--key right".into(),
            with("camera"),
            "the other end has a certificate, and this end has none",
            "this end has a certificate, and the other end has none",
        ),
    ] {
        let (receiver, ran) = sent(dir.path(), &receive, &send);
        ran.says(1, &["no connection: no secure connection", at_sender]);
        receiver.wait_for(at_receiver).kill();
    }
}

#[test]
fn a_tunnel_over_dccp_takes_certificates_too() {
    if !is_installed() {
        return;
    }
    let (dir, port) = (pki(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --dccp ccid2 {}", with("home")));
    let server = server.wait_for("listening");
    let client = format!("perf client 127.0.0.1:{port} --dccp ccid2 --bytes 1MB {}", with("camera"));
    let ran = Running::start(dir.path(), &client).finish();
    ran.says(0, &["authenticated by its certificate"]);
    drop(server);
}

#[test]
fn files_that_are_no_certificates_are_named_with_what_is_wrong() {
    if !is_installed() {
        return;
    }
    let dir = pki();
    for (flags, words) in [
        ("--cert home.pem --cert-key camera.key --ca ca.pem", "--cert-key camera.key: this private key is not the one"),
        ("--cert home.key --cert-key home.key --ca ca.pem", "--cert home.key: there is no certificate in it"),
        ("--cert home.pem --cert-key ca.pem --ca ca.pem", "--cert-key ca.pem: there is no private key in it"),
        ("--cert home.pem --cert-key home.key --ca in.bin", "--ca in.bin: there is no certificate in it"),
        ("--cert none --cert-key home.key --ca ca.pem", "cannot read --cert none"),
    ] {
        Running::start(dir.path(), &format!("receive 1 out.bin {flags}")).finish().says(2, &[words]);
    }
    Test::new("receive 1 out.bin --cert a.pem --ca b.pem").run().says(2, &["--cert-key"]);
    Test::new("receive 1 out.bin --cert a --cert-key b --ca c --key d").run().says(2, &["--key"]);
}

#[test]
fn a_list_says_which_certificates_send_what() {
    if !is_installed() {
        return;
    }
    let (dir, port) = (pki(), free_port());
    certificate(dir.path(), "cam1", &format!("{GOOD}dns_name = cam1.example\n"), Some("ca"));
    certificate(dir.path(), "false", &format!("{GOOD}dns_name = cam1.example\n"), Some("other-ca"));
    let send =
        |who: &str| Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port} {}", with(who))).finish();
    let list = |text: &str| std::fs::write(dir.path().join("list"), text).unwrap();
    list("dns:cam1.example door\n");
    let run = format!("receive {port} {{name}}.bin --keep {} --authorized list", with("home"));
    let receiver = Running::start(dir.path(), &run).wait_for("listening");
    send("cam1").says(0, &["authenticated by its certificate"]);
    // Good, and of nobody in the list; in the list, and of another authority.
    send("camera").says(1, &["our certificate is good, and not in the list of the end that checks it"]);
    send("false").says(1, &["our certificate is not of an authority"]);
    let key = certtool(dir.path(), "--key-id --hash sha256 --infile camera.pem");
    list(&format!("{} yard\n", key.trim()));
    receiver.signal("HUP");
    let receiver = receiver.wait_for("list was read again");
    send("camera").says(0, &[]);
    send("cam1").says(1, &["is good, and not in the list"]);
    receiver.interrupt();
    receiver.finish().says(0, &[]);
    for file in ["door.bin", "yard.bin"] {
        assert_eq!(std::fs::read(dir.path().join(file)).unwrap(), noise(5000), "{file}");
    }
    // Keys have no names.
    list("dns:cam1.example door\n");
    Running::start(dir.path(), "key identity home").finish().says(0, &[]);
    let wrong = Running::start(dir.path(), "receive 1 {name}.bin --keep --identity home --authorized list").finish();
    wrong.says(2, &["list:1: only certificates have names"]);
}
