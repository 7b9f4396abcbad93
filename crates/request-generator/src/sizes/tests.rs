use schema::rng::{Purpose, stream};

use super::ApiSizes;
use crate::cli::SizeArguments;

fn flags(sizes: &str) -> SizeArguments {
    SizeArguments {
        sizes: sizes.into(),
        size_median_mi: None,
        size_sigma: None,
        size_min_mi: None,
        size_max_mi: None,
        size_cv: 0.0,
    }
}

fn draw(arguments: &SizeArguments, count: usize) -> Vec<f64> {
    let sizes = ApiSizes::new(arguments).expect("within bounds");
    let mut rng = stream(1, Purpose::Sizes, 0, 0);
    sizes.draw(&mut rng, count).expect("as many as asked for")
}

fn refused(arguments: &SizeArguments) -> String {
    ApiSizes::new(arguments)
        .expect_err("must be refused")
        .to_string()
}

fn mean(sizes: &[f64]) -> f64 {
    sizes.iter().sum::<f64>() / sizes.len() as f64
}

#[test]
fn the_papers_law_has_a_mean_of_about_412_and_keeps_its_bounds() {
    let sizes = draw(&flags("lognormal"), 100_000);
    assert!(sizes.iter().all(|s| (250.0..=750.0).contains(s)));
    let mean = mean(&sizes);
    assert!((mean - 412.0).abs() < 1.5, "{mean}");
}

#[test]
fn laws_of_a_given_mean_have_it() {
    // Five standard errors of 100,000 draws; the bounds 1 to 100,000 MI cut next to nothing off.
    for (text, mean_mi, cv) in [
        ("constant:412.5", 412.5, 0.0),
        ("exponential:2000", 2000.0, 1.0),
        ("lognormal:2000:0.5", 2000.0, 0.5),
        ("h2:2000:4", 2000.0, 2.0),
        // 0.9 * 100 + 0.1 * 2000; variance 0.09 * 1900^2.
        ("bimodal:100:2000:0.1", 290.0, 570.0 / 290.0),
        ("pareto:500:3", 500.0, 0.58),
    ] {
        let found = mean(&draw(&flags(text), 100_000));
        let error = 5.0 * mean_mi * cv / 100_000_f64.sqrt() + 0.002 * mean_mi;
        assert!((found - mean_mi).abs() <= error, "{text}: {found}");
    }
    let mut sizes = draw(&flags("bimodal:100:2000:0.1"), 1000);
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    assert_eq!(sizes, [100.0, 2000.0]);
    assert_eq!(draw(&flags("list:3,1.5,2"), 3), [3.0, 1.5, 2.0]);
    assert_eq!(draw(&flags("constant:1"), 2), [1.0, 1.0]);
    assert_eq!(draw(&flags("constant:100000"), 2), [1e5, 1e5]);
}

#[test]
fn the_bounds_hold_for_every_law() {
    for text in ["exponential:400", "pareto:400:1.5", "h2:400:10"] {
        let mut arguments = flags(text);
        arguments.size_min_mi = Some(100.0);
        arguments.size_max_mi = Some(500.0);
        let sizes = draw(&arguments, 10_000);
        assert!(sizes.iter().all(|s| (100.0..=500.0).contains(s)), "{text}");
    }
}

#[test]
fn a_law_that_would_draw_forever_is_refused() {
    let cases = [
        (None, None, Some(90_000.0), Some(100_000.0)),
        (None, None, Some(800.0), None),
        (None, None, Some(f64::NAN), None),
        (Some(-1.0), None, None, None),
        (None, Some(f64::INFINITY), None, None),
        (Some(100.0), Some(0.0), None, None),
    ];
    for (size_median_mi, size_sigma, size_min_mi, size_max_mi) in cases {
        let arguments = SizeArguments {
            size_median_mi,
            size_sigma,
            size_min_mi,
            size_max_mi,
            ..flags("lognormal")
        };
        refused(&arguments);
    }
    let constant = SizeArguments {
        size_sigma: Some(0.0),
        ..flags("lognormal")
    };
    assert_eq!(draw(&constant, 1), [395.0]);
    let between_the_modes = SizeArguments {
        size_min_mi: Some(200.0),
        size_max_mi: Some(1000.0),
        ..flags("bimodal:100:2000:0.5")
    };
    assert!(refused(&between_the_modes).contains("one draw in a thousand"));
}

#[test]
fn a_wrong_spelling_says_what_is_wrong_and_what_is_allowed() {
    let cases = [
        ("", "no size law with its values (allowed: lognormal"),
        ("exponential", "no size law"),
        ("exponential:x", "size \"x\" is not a number"),
        (
            "exponential:0.5",
            "size 0.5 is out of range (allowed: 1 to 100000)",
        ),
        ("exponential:NaN", "out of range"),
        ("exponential:-4", "out of range"),
        ("exponential:4:5", "wrong number of values"),
        ("exponentail:4", "did you mean"),
        (
            "pareto:400",
            "wrong number of values after \"pareto\"; the mean comes first",
        ),
        ("pareto:400:1", "A 1 is out of range (allowed: 1.01 to 100)"),
        ("bimodal:5", "expected bimodal:SMALL:LARGE:SHARE"),
        ("bimodal:5:4", "expected bimodal:SMALL:LARGE:SHARE"),
        ("bimodal:5:4:0.1", "LARGE 4 is below SMALL 5"),
        ("bimodal:4:5:2", "SHARE 2 is out of range (allowed: 0 to 1)"),
        ("list:", "size \"\" is not a number"),
        ("list:5,-1", "size -1 is out of range"),
    ];
    for (text, expected) in cases {
        let found = refused(&flags(text));
        assert!(found.contains(expected), "{text}: {found}");
    }
    let stray = SizeArguments {
        size_sigma: Some(0.5),
        ..flags("exponential:400")
    };
    assert!(
        refused(&stray).contains("--size-sigma: 0.5: does not belong to --sizes exponential:400")
    );
    let list = ApiSizes::new(&flags("list:3,4")).expect("a list");
    let mut rng = stream(1, Purpose::Sizes, 0, 0);
    let found = list.draw(&mut rng, 3).expect_err("too short").to_string();
    assert!(found.contains("2 sizes for 3 APIs"), "{found}");
}
