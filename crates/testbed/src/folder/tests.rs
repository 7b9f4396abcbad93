use std::fs;

use schema::manifest::{Arm, ArmState};
use schema::problem::Problem;
use schema::row::{self, Row};

use super::{Folder, newest, read_rows, write_atomically};
use crate::plan::order;

fn arms() -> Vec<Arm> {
    order::arms("t", &["round-robin".to_string()], 2, 1)
}

fn write_part(folder: &Folder, arm: &Arm, rows: u64) {
    let mut text = Vec::new();
    row::write_header(&mut text).expect("memory");
    for seq in 0..rows {
        let row = Row {
            run_id: arm.run_id.clone(),
            strategy: arm.label.clone(),
            seq,
            ..Row::default()
        };
        row::write_line(&row, &mut text).expect("memory");
    }
    fs::write(folder.part(arm), text).expect("write");
}

#[test]
fn an_arm_is_finished_when_its_marker_fits_its_rows() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = Folder::create(temporary.path()).expect("create");
    let arm = &arms()[0];
    assert!(folder.finished(arm).is_none());
    write_part(&folder, arm, 3);
    assert!(folder.finished(arm).is_none(), "no marker yet");
    assert_eq!(folder.mark_done(arm).expect("mark").rows, 3);
    assert_eq!(folder.finished(arm).expect("finished").rows, 3);
    write_part(&folder, arm, 2);
    assert!(folder.finished(arm).is_none(), "rows changed");

    folder.set_aside(arm).expect("set aside");
    assert!(!folder.part(arm).exists());
    assert!(temporary.path().join("parts/b01-a1.csv.partial").exists());
}

/// Marks an arm as done as a bench does.
fn keep(folder: &Folder, arm: &mut Arm) {
    let marker = folder.mark_done(arm).expect("mark");
    arm.rows = Some(marker.rows);
    arm.rows_sha256 = Some(marker.sha256);
    arm.state = ArmState::Done;
}

#[test]
fn rows_that_changed_since_they_were_recorded_are_refused() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = Folder::create(temporary.path()).expect("create");
    let mut manifest = crate::bench::testing::manifest(arms());
    for arm in &mut manifest.arms {
        write_part(&folder, arm, 3);
        keep(&folder, arm);
    }
    folder.assemble_rows(&manifest).expect("assemble");
    assert_eq!(folder.read_rows(&manifest).expect("rows").len(), 12);
    let path = folder.path("rows.csv");
    let whole = fs::read_to_string(&path).expect("read");
    let last = &manifest.arms[3].run_id;
    for (changed, complaint) in [
        (
            whole.replacen("round-robin", "round-rabin", 1),
            "t-b01-a1: rows have changed".into(),
        ),
        (
            whole[..whole.len() - 5].into(),
            format!("{last}: 2 rows of 3"),
        ),
        (String::new(), "t-b01-a1: 0 rows of 3".into()),
    ] {
        fs::write(&path, &changed).expect("write");
        let error = folder.read_rows(&manifest).unwrap_err();
        assert!(error.is::<Problem>(), "{error:#}");
        assert!(
            error.to_string().contains(&complaint),
            "{complaint}: {error}"
        );
    }
    // Rows of arms that do not count are no change.
    manifest.arms[3].state = ArmState::Planned;
    fs::write(&path, &whole[..whole.len() - 5]).expect("write");
    assert_eq!(folder.read_rows(&manifest).expect("rows").len(), 9);
}

#[test]
fn one_bench_at_a_time_fills_a_folder() {
    let temporary = tempfile::tempdir().expect("folder");
    let root = temporary.path();
    let own = format!("process {} since ", std::process::id());
    let first = Folder::create(root).expect("create");
    let refused = |folder: anyhow::Result<Folder>| {
        let error = folder.expect_err("held");
        assert!(error.to_string().contains(&own), "{error}");
    };
    refused(Folder::create(root));
    first
        .write_manifest(&crate::bench::testing::manifest(arms()))
        .expect("manifest");
    refused(Folder::resume(root).map(|(folder, _)| folder));
    let (reader, _) = Folder::open(root).expect("readers need no lock");
    assert!(reader.holder().expect("held").starts_with(&own));
    let copy = first.clone();
    drop(first);
    assert!(reader.holder().is_some(), "a copy holds it");
    drop(copy);
    assert!(reader.holder().is_none());
    let (again, _) = Folder::resume(root).expect("free");
    again.drop_parts().expect("complete");
    assert!(reader.holder().is_none(), "the lock goes with the parts");
}

#[test]
fn a_balancer_that_starts_again_finds_no_log_in_its_way() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = Folder::create(temporary.path()).expect("create");
    let arm = &arms()[0];
    let arm_log = folder.path(arm.events.as_deref().expect("named"));
    for log in [folder.path(super::START_LOG), arm_log] {
        fs::write(&log, "a record\n").expect("write");
        folder.make_working_folders().expect("again");
        folder.set_aside(arm).expect("set aside");
        assert!(!log.exists());
        let kept = format!("{}.partial", log.display());
        assert_eq!(fs::read_to_string(kept).expect("kept"), "a record\n");
    }
}

#[test]
fn rows_are_those_of_the_finished_arms_in_running_order() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = Folder::create(temporary.path()).expect("create");
    let mut manifest = crate::bench::testing::manifest(arms());
    for i in [3, 0] {
        write_part(&folder, &manifest.arms[i], 2);
        keep(&folder, &mut manifest.arms[i]);
    }
    write_part(&folder, &manifest.arms[1], 1);
    folder.assemble_rows(&manifest).expect("assemble");
    let rows = folder.read_rows(&manifest).expect("rows");
    let ids: Vec<&str> = rows.iter().map(|r| r.run_id.as_str()).collect();
    assert_eq!(ids, ["t-b01-a1", "t-b01-a1", "t-b02-a2", "t-b02-a2"]);
    folder.write_manifest(&manifest).expect("manifest");
    let (_, read) = Folder::open(temporary.path()).expect("open");
    assert_eq!(read, manifest);
    assert!(
        Folder::create(temporary.path()).is_err(),
        "never on top of a result"
    );
}

#[test]
fn an_unterminated_last_line_is_dropped_and_other_damage_refused() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = Folder::create(temporary.path()).expect("create");
    let arm = &arms()[0];
    write_part(&folder, arm, 2);
    let part = folder.part(arm);
    let whole = fs::read_to_string(&part).expect("read");
    fs::write(&part, format!("{whole}t-b01-a1,1,round")).expect("write");
    assert_eq!(read_rows(&part).expect("rows").len(), 2);
    fs::write(&part, format!("{whole}t-b01-a1,1,round\n")).expect("write");
    let error = format!("{:#}", read_rows(&part).unwrap_err());
    assert!(error.contains("line: 4"), "{error}");
}

#[test]
fn replacing_a_file_leaves_no_temporary_one() {
    let temporary = tempfile::tempdir().expect("folder");
    let path = temporary.path().join("summary.json");
    write_atomically(&path, b"one").expect("write");
    write_atomically(&path, b"two").expect("write");
    assert_eq!(fs::read(&path).expect("read"), b"two");
    assert_eq!(fs::read_dir(temporary.path()).expect("list").count(), 1);
}

#[test]
fn the_newest_folder_has_the_latest_stamp() {
    let temporary = tempfile::tempdir().expect("folder");
    assert!(newest(temporary.path()).is_err());
    for name in ["20260102T000000Z-quick", "20260101T000000Z-smoke", "zzz"] {
        fs::create_dir(temporary.path().join(name)).expect("folder");
    }
    for name in ["20260102T000000Z-quick", "20260101T000000Z-smoke"] {
        fs::write(temporary.path().join(name).join("manifest.json"), "{}").expect("write");
    }
    let found = newest(temporary.path()).expect("found");
    assert!(found.ends_with("20260102T000000Z-quick"));
}
