use statrs::distribution::{ContinuousCDF, Exp, LogNormal, Pareto};

use super::{assert_law, mean};
use crate::laws::sizes::{
    ALIASES, SPELLINGS, SizeLaw, TASK_SIZE_MI, name_of, noise_fits, noisy_mi,
};
use crate::rng::{Purpose, stream};

const DRAWS: usize = 100_000;

fn draws(law: &SizeLaw) -> Vec<f64> {
    let mut rng = stream(9, Purpose::Sizes, 0, 0);
    (0..DRAWS).map(|_| law.draw(&mut rng)).collect()
}

fn law(text: &str) -> SizeLaw {
    SizeLaw::parse(text).expect("a law")
}

#[test]
fn draws_follow_their_law_with_mean_one() {
    let exponential = Exp::new(1.0).expect("a law");
    assert_law("exp", draws(&law("exp")), |x| exponential.cdf(x));

    // Mean exp(mu + sigma^2/2) = 1 and squared coefficient of variation exp(sigma^2) - 1 = 0.36.
    let sigma = 1.36_f64.ln().sqrt();
    let lognormal = LogNormal::new(-sigma * sigma / 2.0, sigma).expect("a law");
    assert_law("lognormal", draws(&law("lognormal:0.6")), |x| {
        lognormal.cdf(x)
    });

    // Two branches of equal mean share: p / rate = (1 - p) / rate' = 1/2.
    let p = (1.0 + (9.0_f64 / 11.0).sqrt()) / 2.0;
    let (small, large) = (Exp::new(2.0 * p), Exp::new(2.0 * (1.0 - p)));
    let (small, large) = (small.expect("a law"), large.expect("a law"));
    let h2 = |x| p * small.cdf(x) + (1.0 - p) * large.cdf(x);
    assert_law("h2", draws(&law("h2:10")), h2);

    // Mean shape * scale / (shape - 1) = 1.
    let pareto = Pareto::new(0.5 / 1.5, 1.5).expect("a law");
    assert_law("pareto", draws(&law("pareto:1.5")), |x| pareto.cdf(x));

    assert!(draws(&law("det")).iter().all(|x| *x == 1.0));
    let bimodal = draws(&law("bimodal:20:0.05"));
    // 0.95 s + 0.05 * 20 s = 1.
    let small = 1.0 / 1.95;
    let large = bimodal.iter().filter(|x| **x > 1.0).count() as f64 / DRAWS as f64;
    assert!(
        bimodal
            .iter()
            .all(|x| (x - small).abs() < 1e-12 || (x - 20.0 * small).abs() < 1e-12)
    );
    assert!((large - 0.05).abs() < 5.0 * (0.05 * 0.95 / DRAWS as f64).sqrt());
}

#[test]
fn spreads_are_those_of_theory_and_means_are_one() {
    let cases = [
        ("det", 0.0),
        ("exp", 1.0),
        ("lognormal", 0.0625),
        ("lognormal:2", 4.0),
        ("h2:10", 10.0),
        ("h2:1", 1.0),
        // a / ((a - 1)^2 (a - 2)) over the squared mean (a / (a - 1))^2 of scale one.
        ("pareto:3", 1.0 / 3.0),
        (
            "bimodal:20:0.05",
            0.05 * 0.95 * (19.0 / 1.95) * (19.0 / 1.95),
        ),
    ];
    for (text, scv) in cases {
        let law = law(text);
        assert!(
            (law.scv() - scv).abs() < 1e-12 * (1.0 + scv),
            "{text}: {}",
            law.scv()
        );
        let m = mean(&draws(&law));
        let bound = 5.0 * (scv / DRAWS as f64).sqrt() + 1e-9;
        assert!((m - 1.0).abs() <= bound, "{text}: mean {m}");
    }
    assert_eq!(law("pareto:2").scv(), f64::INFINITY);
}

#[test]
fn the_distribution_function_is_that_of_an_independent_library() {
    let sigma = 1.0625_f64.ln().sqrt();
    let lognormal = LogNormal::new(-sigma * sigma / 2.0, sigma).expect("a law");
    let pareto = Pareto::new(0.5 / 1.5, 1.5).expect("a law");
    for i in 1..400 {
        let x = f64::from(i) / 40.0;
        assert!(
            (law("lognormal").cdf(x) - lognormal.cdf(x)).abs() < 1e-10,
            "{x}"
        );
        assert!(
            (law("pareto:1.5").cdf(x) - pareto.cdf(x)).abs() < 1e-10,
            "{x}"
        );
        assert!(
            (law("h2:1").cdf(x) - law("exp").cdf(x)).abs() < 1e-10,
            "{x}"
        );
    }
    assert_eq!(law("exp").cdf(0.0), 0.0);
    assert_eq!(law("det").within(&(1.0..=2.0)), 1.0);
    assert_eq!(law("det").within(&(1.5..=2.0)), 0.0);
    assert!((law("bimodal:3:0.5").within(&(1.0..=2.0)) - 0.5).abs() < 1e-12);
}

#[test]
fn noise_stays_within_the_bounds_of_a_size_or_is_known_not_to() {
    let noise = SizeLaw::log_normal(0.2);
    assert!(noise_fits(10.0, &noise) && noise_fits(50_000.0, &noise));
    assert!(!noise_fits(1.0, &noise) && !noise_fits(99_000.0, &noise));
    assert!(!noise_fits(10.0, &SizeLaw::log_normal(10.0)));
    let mut rng = stream(2, Purpose::Sizes, 1, 0);
    for mean_mi in [*TASK_SIZE_MI.start(), 2.0, *TASK_SIZE_MI.end()] {
        let sizes: Vec<f64> = (0..2000)
            .map(|_| noisy_mi(mean_mi, &noise, &mut rng))
            .collect();
        assert!(sizes.iter().all(|s| TASK_SIZE_MI.contains(s)));
        assert!(
            sizes
                .iter()
                .all(|s| (s * 100.0 - (s * 100.0).round()).abs() < 1e-6)
        );
    }
    let sizes: Vec<f64> = (0..20_000)
        .map(|_| noisy_mi(400.0, &noise, &mut rng) / 400.0)
        .collect();
    let sigma = 1.04_f64.ln().sqrt();
    let lognormal = LogNormal::new(-sigma * sigma / 2.0, sigma).expect("a law");
    assert_law("noise", sizes, |x| lognormal.cdf(x));
}

#[test]
fn a_wrong_spelling_is_refused_with_the_bound() {
    let cases = [
        ("", "unknown size law \"\""),
        ("expo", "did you mean \"exp\"?"),
        ("exp:3", "wrong number of values after \"exp\""),
        ("lognormal:x", "CV \"x\" is not a number"),
        ("lognormal:-1", "CV -1 is out of range (allowed: 0 to 10)"),
        ("lognormal:NaN", "out of range"),
        ("h2", "wrong number of values after \"h2\""),
        ("h2:0.5", "SCV 0.5 is out of range (allowed: 1 to 1000)"),
        ("pareto:1", "A 1 is out of range (allowed: 1.01 to 100)"),
        ("bimodal:0.5:0.1", "RATIO 0.5 is out of range"),
        (
            "bimodal:2:1.1",
            "SHARE 1.1 is out of range (allowed: 0 to 1)",
        ),
    ];
    for (text, expected) in cases {
        let found = SizeLaw::parse(text).expect_err("must be refused");
        assert!(found.contains(expected), "{text}: {found}");
    }
    assert_eq!(SizeLaw::parse("constant"), Ok(SizeLaw::Constant));
    assert_eq!(SizeLaw::parse("exponential"), Ok(SizeLaw::Exponential));
}

#[test]
fn every_name_of_the_table_is_known_to_the_parser() {
    let names = SPELLINGS.iter().map(|(form, _)| name_of(form));
    for name in names.chain(ALIASES.iter().map(|(alias, _)| *alias)) {
        assert!(SizeLaw::is_named(name));
        for values in ["", ":2", ":2:0.5"] {
            let read = SizeLaw::parse(&format!("{name}{values}"));
            let why = read.err().unwrap_or_default();
            assert!(!why.starts_with("unknown"), "{why}");
        }
    }
    for (alias, name) in ALIASES {
        assert_eq!(SizeLaw::parse(alias), SizeLaw::parse(name));
    }
}
