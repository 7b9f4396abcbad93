//! `balancer replay` on logs written by hand: what it refuses, and what it tells of a different pick.

use crate::support::program;

const START: &str = r#"{"event":"start","schema":"plumbline.events/1","strategy":"weighted-least-request","seed":1,"started_unix_ns":0,"poll_interval_ns":100000000,"protection":"plain","members":[{"id":0,"name":"a","weight":4,"cores":4.0,"memory_mib":1024.0},{"id":1,"name":"b","weight":3,"cores":3.0,"memory_mib":1024.0}]}"#;

fn pick(t_ns: u64, number: u64, backend: u32, in_flight: [u32; 2]) -> String {
    let [a, b] = in_flight;
    format!(
        r#"{{"event":"pick","t_ns":{t_ns},"dispatch":{number},"request_id":"r{number}","method":"GET","url":"/","class":0,"attempt":0,"backend":{backend},"candidates":[{{"id":0,"in_flight":{a}}},{{"id":1,"in_flight":{b}}}],"pick_ns":1}}"#
    )
}

/// Exit code and everything that is printed.
fn replay(lines: &[String], flags: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let done = program()
        .arg("replay")
        .args(flags)
        .arg(&path)
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code(), text)
}

/// Of 4 and 3 cores the first request goes to the 4, (0+1)/4 < (0+1)/3, and the second to the 3.
#[test]
fn times_that_stand_still_replay_and_times_that_go_back_are_refused() {
    let of = |second_ns| {
        let picks = [pick(20, 1, 0, [0, 0]), pick(second_ns, 2, 1, [1, 0])];
        let lines = [&[START.to_string()], &picks[..]].concat();
        replay(&lines, &[])
    };
    let (code, text) = of(20);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("2 of 2 picks equal"), "{text}");
    let (code, text) = of(19);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("line 3: time goes back to 19 ns, after 20 ns before it"),
        "{text}"
    );
}

/// A step of the rules may be told late, and what follows it may not be earlier than it.
#[test]
fn a_step_of_the_rules_has_the_time_at_which_it_was_due() {
    let step =
        |t_ns: u64| format!(r#"{{"event":"ejection","t_ns":{t_ns},"backend":0,"step":"trial"}}"#);
    let of = |step_ns, second_ns| {
        let (first, second) = (pick(20, 1, 0, [0, 0]), pick(second_ns, 2, 1, [1, 0]));
        replay(&[START.into(), first, step(step_ns), second], &[])
    };
    // No such step is taken in the replay: a difference, but no damage.
    assert_eq!(of(10, 20).0, Some(1));
    let (code, text) = of(30, 25);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("line 4: time goes back to 25 ns, after 30 ns"),
        "{text}"
    );
}

#[test]
fn the_first_different_pick_shows_what_was_known_of_the_members_in_log_and_replay() {
    let lines = [
        START.to_string(),
        pick(10, 1, 0, [0, 0]),
        pick(20, 2, 0, [2, 0]),
    ];
    let (code, text) = replay(&lines, &[]);
    assert_eq!(code, Some(1), "{text}");
    let expected = "  first difference: line 3, request r2: logged backend 0, replayed backend 1\n    \
                    backend 0 \"a\", weight 4, up: in_flight 1 (logged 2)\n    \
                    backend 1 \"b\", weight 3, up: in_flight 0\n";
    assert!(text.contains(expected), "{text}");
    let (_, json) = replay(&lines, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let a = &json["members"][0];
    assert_eq!(
        (&a["name"], &a["weight"], &a["state"]),
        (&"a".into(), &4.into(), &"up".into())
    );
    assert_eq!(
        (&a["logged"]["in_flight"], &a["replayed"]["in_flight"]),
        (&2.into(), &1.into())
    );
}
