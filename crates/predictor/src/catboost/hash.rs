//! Hashes of categories and of combinations of inputs.

/// The hash of a category's text, as the library stores it: the low half of CityHash64 1.0.
pub fn category_hash(text: &str) -> i32 {
    naive_cityhash::cityhash64(text.as_bytes()) as u32 as i32
}

/// The hash of a combination after one more element, all wrapping.
pub(super) fn extend(hash: u64, element: u64) -> u64 {
    const M: u64 = 0x4906_ba49_4954_cb65;
    M.wrapping_mul(hash.wrapping_add(M.wrapping_mul(element)))
}
