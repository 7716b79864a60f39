//! The demo's files, and the form of its summary, which scripts rely on. The quality of the video
//! is measured elsewhere.

use crate::common::Test;

#[test]
fn the_summary_has_the_form_that_scripts_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let ran = Test::new(&format!("demo --seconds 5 --json --out {}", out.display())).run();
    ran.says(0, &[]);
    let text = std::fs::read_to_string(out.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(ran.json()["runs"], summary["runs"]);
    let runs = summary["runs"].as_array().unwrap();
    let names =
        |list: &serde_json::Value| list.as_array().unwrap().iter().map(|x| x["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&summary["runs"]), ["wifi", "lte", "both", "far", "far-fec"]);
    assert_eq!(names(&runs[2]["paths"]), ["wifi", "lte"]);
    for run in runs {
        let keys: Vec<_> = run.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "name",
                "seconds",
                "on_time",
                "playable_share",
                "psnr_db",
                "psnr_white_db",
                "longest_freeze_s",
                "paths",
                "output"
            ]
        );
        assert_eq!(run["seconds"], 5);
        let table = out.join(format!("{}.psnr.csv", run["name"].as_str().unwrap()));
        assert_eq!(std::fs::read_to_string(table).unwrap().lines().count(), 1 + 5 * 25, "a line for each frame");
        for kind in ["audio", "frames", "I", "P", "B"] {
            assert!((0.0..=1.0).contains(&run["on_time"][kind].as_f64().unwrap()), "{run}");
        }
        for path in run["paths"].as_array().unwrap() {
            assert!(path["sent_bytes"].as_u64().unwrap() > 0 && path["lost_packets"].is_u64(), "{run}");
        }
        assert!(std::fs::exists(run["output"].as_str().unwrap()).unwrap());
    }
}

#[test]
fn a_clip_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Test::new(&format!("demo --clip nowhere.mp4 --out {}", folder.path().display())).run();
    ran.says(1, &["cannot open the clip nowhere.mp4"]);
}
