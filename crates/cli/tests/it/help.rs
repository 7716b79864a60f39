//! The words that users read first; each change of them shows up as a difference here.

use crate::common::Test;

macro_rules! help {
    ($($name:ident: $args:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let ran = Test::new($args).run();
            ran.says(0, &[]);
            insta::assert_snapshot!(ran.out());
        }
    )+};
}

help! {
    top: "--help",
    send: "send --help",
    encode: "encode --help",
    receive: "receive --help",
    emulate: "emulate --help",
    relay: "relay --help",
    doctor: "doctor --help",
    perf: "perf --help",
    perf_server: "perf server --help",
    perf_client: "perf client --help",
    tunnel: "tunnel --help",
    tunnel_client: "tunnel client --help",
    tunnel_server: "tunnel server --help",
    lab: "lab --help",
    lab_list: "lab list --help",
    lab_run: "lab run --help",
    lab_check: "lab check --help",
    lab_clip: "lab clip --help",
    lab_survey: "lab survey --help",
    demo: "demo --help",
    key: "key --help",
    viz: "viz --help",
}

macro_rules! brief {
    ($($name:ident: $args:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let ran = Test::new($args).run();
            ran.says(0, &[]);
            let lines = ran.out().lines().count();
            assert!(lines <= 30, "{lines} lines are more than a screen:\n{}", ran.out());
            insta::assert_snapshot!(ran.out());
        }
    )+};
}

brief! {
    brief_top: "-h",
    brief_send: "send -h",
    brief_receive: "receive -h",
    brief_encode: "encode -h",
    brief_tunnel_client: "tunnel client -h",
    brief_tunnel_server: "tunnel server -h",
}
