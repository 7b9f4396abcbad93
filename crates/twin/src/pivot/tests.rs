use super::{Arguments, Place, Table};

const RESULT: &str = "\
run,strategy,seed,requests,load,arrivals_per_poll,verdict,mean_over_service
0,wrr,1,100,0.7,1,stable,1.30
1,wrr,2,100,0.7,1,stable,1.28
2,wrr,1,100,0.7,4,stable,1.30
3,wrr,2,100,0.7,4,stable,1.28
4,\"polled:a=1,b=2\",1,100,0.7,1,stable,1.10
5,\"polled:a=1,b=2\",2,100,0.7,1,stable,1.08
6,\"polled:a=1,b=2\",1,100,0.7,4,stable,1.70
7,\"polled:a=1,b=2\",2,100,0.7,4,stable,1.68
8,live,1,100,0.7,1,unstable,
9,live,2,100,0.7,1,stable,1.0
10,live,1,100,0.9,1,stable,1.5
";

fn arguments(rows: &str, only: &[&str]) -> Arguments {
    Arguments {
        file: "r.csv".into(),
        rows: rows.into(),
        columns: "strategy".into(),
        value: "mean_over_service".into(),
        only: only.iter().map(ToString::to_string).collect(),
        cross: None,
        json: false,
    }
}

fn table(rows: &str, only: &[&str]) -> Result<Table, String> {
    Table::of("r.csv", RESULT, &arguments(rows, only)).map_err(|e| e.to_string())
}

#[test]
fn replications_are_averaged_and_an_unstable_run_has_no_mean() {
    let table = table("arrivals_per_poll", &["load=0.7"]).expect("a table");
    assert_eq!(table.row_labels, ["1", "4"]);
    assert_eq!(table.column_labels, ["wrr", "polled:a=1,b=2", "live"]);
    let Place::Mean {
        mean,
        half_width,
        runs,
    } = table.places[0][0]
    else {
        panic!("{:?}", table.places)
    };
    // Two values .02 apart: standard error .01, t of one degree of freedom 12.706.
    assert!((mean - 1.29).abs() < 1e-12 && runs == 2);
    assert!((half_width.expect("two") - 0.12706).abs() < 1e-4);
    assert_eq!(table.places[0][2], Place::Unstable);
    assert_eq!(table.places[1][2], Place::Nothing);
    // -.2 at 1 and +.4 at 4: zero a third of the way.
    let crossings = table.crossings("wrr").expect("numbers");
    assert_eq!(crossings.len(), 1);
    let text = table.text(&crossings);
    assert!(
        text.contains("polled:a=1,b=2: worse from arrivals_per_poll = 2.000 on"),
        "{text}"
    );
}

#[test]
fn what_else_varies_is_never_averaged_away() {
    let error = table("arrivals_per_poll", &[]).expect_err("two loads");
    assert!(
        error.contains("load: varies within the table (0.7 and 0.9); add --where load=0.7"),
        "{error}"
    );
}

#[test]
fn wrong_questions_are_refused_with_what_there_is() {
    for (rows, only, said) in [
        ("lod", "load=0.7", "did you mean \"load\"?"),
        ("load", "lod=1", "--where: lod: no such column"),
        ("load", "load=1", "no line is left"),
        ("load", "load", "allowed: COLUMN=VALUE"),
    ] {
        let error = table(rows, &[only]).expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    let good = table("arrivals_per_poll", &["load=0.7"]).expect("a table");
    let error = good.crossings("jiq").expect_err("not there").to_string();
    assert!(
        error.contains("allowed: wrr, polled:a=1,b=2, live"),
        "{error}"
    );
}

#[test]
fn an_empty_value_of_a_stable_run_is_not_unstable() {
    let text = RESULT.replace("8,live,1,100,0.7,1,unstable,", "8,live,1,100,0.7,1,stable,");
    let of = |text: &str| {
        let arguments = arguments("arrivals_per_poll", &["load=0.7"]);
        Table::of("r.csv", text, &arguments).map_err(|e| e.to_string())
    };
    let table = of(&text).expect("a table");
    assert_eq!(table.places[0][2], Place::Empty);
    assert!(table.text(&[]).contains("no value"));
    // A run that is in the file twice is no replication.
    let twice = format!("{RESULT}11,wrr,2,100,0.7,4,stable,1.28\n");
    let said = of(&twice).expect_err("refused");
    assert!(
        said.contains("a run of this seed is in the table twice"),
        "{said}"
    );
}

#[test]
fn many_labels_are_no_square() {
    use std::fmt::Write as _;
    let mut text = String::from("run,strategy,seed,place,verdict,mean_over_service\n");
    // Twice as many labels as places of a table are allowed: refused after one pass, not after 1e10 looks.
    for i in 0..200_000 {
        writeln!(text, "{i},s,1,p{i},stable,1").expect("written");
    }
    let said = Table::of("r.csv", &text, &arguments("place", &[])).map_err(|e| e.to_string());
    assert!(said.expect_err("refused").contains("up to 10000"));
}
