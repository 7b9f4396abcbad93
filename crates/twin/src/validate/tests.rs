use super::judge::Line;
use super::scene::{measure, pool, spec};
use super::{Tier, cases, print, table};
use crate::station::Model;
use schema::laws::sizes::SizeLaw;

/// The whole acceptance table; what fails is printed as `twin validate` prints it.
#[test]
fn the_default_tier_passes() {
    let lines = table(Tier::Default, None);
    let missed: Vec<Line> = lines.iter().filter(|l| l.is_miss()).cloned().collect();
    assert!(
        missed.is_empty(),
        "\n{}",
        print::table(Tier::Default, &missed)
    );
    for id in [
        "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A7 order", "A8", "A9", "A11", "A12", "A13",
        "A14", "A16", "A17", "A18", "A18 trap", "A19", "A20", "A21", "A26", "A27", "A28",
    ] {
        assert!(lines.iter().any(|l| l.id == id), "{id} is missing");
    }
}

/// A wrong worker model, a wrong rule or a wrong law is seen even in the default tier.
#[test]
fn what_is_wrong_misses() {
    let requests = 2_000_000;
    let misses = |setup: &crate::engine::Setup, strategy: &str, expected: f64, tolerance: f64| {
        let got = measure(setup, &spec(strategy).expect("a strategy")).expect("a run");
        Line::number("", "", expected, got, Tier::Default.tolerance(tolerance)).is_miss()
    };
    // Processor sharing where first come, first served is expected, with sizes that tell them apart.
    let mut single = pool(&[1.0], 0.8, requests);
    single.sizes = SizeLaw::Constant;
    let fcfs = analytic::fcfs::mean_response(0.8, 0.0).expect("in bounds");
    assert!(misses(&single, "random", fcfs, 0.005));
    single.model = Model::Fcfs;
    assert!(!misses(&single, "random", fcfs, 0.005));
    // Two distinct where two with replacement are expected.
    let ten = pool(&[1.0; 10], 0.7, requests);
    let with_replacement = analytic::choices::finite_pool_of_two(10, 0.7).expect("in bounds");
    assert!(misses(&ten, "d-choices:d=2", with_replacement, 0.005));
    assert!(!misses(
        &ten,
        "d-choices:d=2,replacement=on",
        with_replacement,
        0.005
    ));
    // Ignoring cores where the shortest expected delay is expected.
    let three = pool(&[4.0, 3.0, 2.0], 0.7, requests);
    assert!(misses(&three, "least-request:ties=random", 1.10755, 0.005));
    assert!(!misses(&three, "weighted-least-request", 1.10755, 0.005));
}

#[test]
fn cases_are_in_the_order_of_the_table() {
    let ids: Vec<u32> = cases(Tier::Full)
        .iter()
        .map(|c| super::order(c.id))
        .collect();
    assert!(ids.is_sorted() && ids.first() == Some(&1) && ids.last() == Some(&28));
    assert_eq!(super::order("A18 trap"), 18);
}
