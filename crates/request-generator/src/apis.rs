//! Method and URL of each API: unique pairs, targets of several segments.

use std::collections::HashSet;

use schema::rng::{Purpose, below, stream};
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
        let method = Method::ALL[below(&mut rng, Method::ALL.len() as u64) as usize];
        let segments = 2 + below(&mut rng, 3) as usize;
        let mut url = String::new();
        let mut previous = RESOURCES.len();
        for _ in 0..segments {
            // Not the same resource twice in a row.
            let mut pick = below(&mut rng, RESOURCES.len() as u64 - 1) as usize;
            pick += usize::from(pick >= previous);
            previous = pick;
            url.push('/');
            url.push_str(RESOURCES[pick]);
        }
        if taken.insert((method, url.clone())) {
            pairs.push((method, url));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::draw;
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
}
