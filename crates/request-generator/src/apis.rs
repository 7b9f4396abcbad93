//! Method and URL of each API: unique pairs, targets of several segments.

use std::collections::HashSet;

use rand_core::RngCore;
use schema::problem::Problem;
use schema::rng::{Purpose, below, shuffle, stream};
use schema::workload::Method;

/// Resources as a shop would name them; one to three follow each other in a target.
const RESOURCES: [&str; 40] = [
    "accounts",
    "addresses",
    "alerts",
    "articles",
    "baskets",
    "brands",
    "campaigns",
    "carts",
    "categories",
    "comments",
    "contracts",
    "coupons",
    "customers",
    "deliveries",
    "devices",
    "discounts",
    "documents",
    "events",
    "images",
    "inventory",
    "invoices",
    "items",
    "messages",
    "orders",
    "payments",
    "prices",
    "products",
    "profiles",
    "ratings",
    "refunds",
    "reports",
    "returns",
    "reviews",
    "sessions",
    "shipments",
    "stores",
    "subscriptions",
    "suppliers",
    "tickets",
    "users",
];

/// Draws `count` different (method, target) pairs: methods evenly, two to four segments.
pub(crate) fn draw(seed: u64, count: usize) -> Vec<(Method, String)> {
    let mut rng = stream(seed, Purpose::ApiNames, 0, 0);
    let mut taken = HashSet::with_capacity(count);
    let mut pairs = Vec::with_capacity(count);
    while pairs.len() < count {
        let method = any_method(&mut rng);
        let url = any_target(&mut rng);
        if taken.insert((method, url.clone())) {
            pairs.push((method, url));
        }
    }
    pairs
}

/// The same over `urls` different targets, each of which occurs.
///
/// # Errors
/// More targets than pairs, or more pairs than targets have methods.
pub(crate) fn draw_over(
    seed: u64,
    count: usize,
    urls: usize,
) -> Result<Vec<(Method, String)>, Box<Problem>> {
    let least = count.div_ceil(Method::ALL.len());
    if !(least..=count).contains(&urls) {
        let problem = Problem::new("--urls", urls.to_string(), "out of range");
        let allowed = format!("{least} to {count} for {count} APIs");
        return Err(problem.allowed(allowed).into());
    }
    let mut rng = stream(seed, Purpose::ApiNames, 0, 0);
    let mut targets = Vec::with_capacity(urls);
    let mut known = HashSet::with_capacity(urls);
    while targets.len() < urls {
        let url = any_target(&mut rng);
        if known.insert(url.clone()) {
            targets.push(url);
        }
    }
    // Every method of every target once in a seeded order, after one pair for each target.
    let mut pairs: Vec<(Method, String)> = Vec::with_capacity(count);
    let mut rest = Vec::with_capacity(urls * Method::ALL.len());
    for url in targets {
        let mut methods = Method::ALL;
        shuffle(&mut rng, &mut methods);
        rest.extend(methods[1..].iter().map(|method| (*method, url.clone())));
        pairs.push((methods[0], url));
    }
    shuffle(&mut rng, &mut rest);
    pairs.extend(rest.into_iter().take(count - urls));
    Ok(pairs)
}

fn any_method(rng: &mut dyn RngCore) -> Method {
    Method::ALL[below(rng, Method::ALL.len() as u64) as usize]
}

/// Two to four segments, no resource twice in a row.
fn any_target(rng: &mut dyn RngCore) -> String {
    let segments = 2 + below(rng, 3) as usize;
    let mut url = String::new();
    let mut previous = RESOURCES.len();
    for _ in 0..segments {
        let mut pick = below(rng, RESOURCES.len() as u64 - 1) as usize;
        pick += usize::from(pick >= previous);
        previous = pick;
        url.push('/');
        url.push_str(RESOURCES[pick]);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::{draw, draw_over};
    use schema::workload::{MAX_APIS, Method};
    use std::collections::HashSet;

    #[test]
    fn pairs_are_unique_and_every_method_and_length_occurs() {
        let pairs = draw(42, 100);
        assert_eq!(pairs, draw(42, 100));
        assert_ne!(pairs, draw(43, 100));
        assert_eq!(pairs.iter().collect::<HashSet<_>>().len(), 100);
        for method in Method::ALL {
            assert!(pairs.iter().any(|(m, _)| *m == method), "{method:?}");
        }
        for segments in 2..=4 {
            assert!(
                pairs
                    .iter()
                    .any(|(_, u)| u.matches('/').count() == segments)
            );
        }
    }

    #[test]
    fn the_most_apis_can_be_drawn() {
        assert_eq!(draw(1, MAX_APIS).len(), MAX_APIS);
    }

    #[test]
    fn no_resource_follows_itself() {
        for (_, url) in draw(5, 2000) {
            let segments: Vec<&str> = url.split('/').skip(1).collect();
            assert!(segments.windows(2).all(|w| w[0] != w[1]), "{url}");
        }
    }

    #[test]
    fn pairs_over_a_few_targets_are_unique_and_use_them_all() {
        for (count, urls) in [(10, 7), (5, 1), (100_000, 20_000), (9, 9)] {
            let pairs = draw_over(3, count, urls).expect("within bounds");
            assert_eq!(pairs.iter().collect::<HashSet<_>>().len(), count);
            let targets: HashSet<&str> = pairs.iter().map(|(_, url)| url.as_str()).collect();
            assert_eq!(targets.len(), urls);
        }
        for urls in [0, 1, 11] {
            let found = draw_over(3, 10, urls).expect_err("must be refused");
            assert!(found.to_string().contains("2 to 10 for 10 APIs"), "{found}");
        }
    }
}
