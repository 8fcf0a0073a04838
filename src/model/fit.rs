//! Whether a device is what a job asked for: one rule for the check of a job file and for the grant.

use super::Bytes;

/// What a card must report of the memory that was asked for: 93 %. Vendors call 81559 MiB "80 GB".
const MEMORY_PER_MILLE: u128 = 930;

/// Whether `word` stands in a device's name, without regard to case, between borders of letters and digits.
///
/// `a100` fits `NVIDIA A100 80GB PCIe` and not `NVIDIA A1000`. Blanks, `-` and `_` in `word` stand for each other.
pub fn model_matches(device_name: &str, word: &str) -> bool {
    let fold = |text: &str| -> Vec<char> {
        text.chars()
            .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
            .collect::<String>()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .collect()
    };
    let (name, word) = (fold(device_name), fold(word));
    if word.is_empty() {
        return false;
    }
    name.windows(word.len()).enumerate().any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|at| name.get(at));
        let after = name.get(at + word.len());
        window == word && border(before, word.first()) && border(word.last(), after)
    })
}

/// Whether a word may end between these two characters: not inside a run of letters and digits.
fn border(left: Option<&char>, right: Option<&char>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => !(left.is_alphanumeric() && right.is_alphanumeric()),
        (None, _) | (_, None) => true,
    }
}

/// Whether a card that reports `card` fits a request for `asked`.
pub const fn memory_fits(card: Bytes, asked: Bytes) -> bool {
    card.0 as u128 * 1000 >= asked.0 as u128 * MEMORY_PER_MILLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_words_match_between_borders() {
        for (name, word, fits) in [
            ("NVIDIA A100 80GB PCIe", "a100", true),
            ("NVIDIA A100-SXM4-40GB", "A100", true),
            ("NVIDIA A100-SXM4-40GB", "a100 sxm4", true),
            ("NVIDIA H100 80GB HBM3", "h100-80gb", true),
            ("NVIDIA GeForce RTX 4090", "4090", true),
            ("NVIDIA GeForce RTX 4090", "rtx4090", false),
            ("NVIDIA RTX A1000", "a100", false),
            ("NVIDIA A10", "a100", false),
            ("NVIDIA A100 80GB PCIe", "a10", false),
            ("NVIDIA A100 80GB PCIe", "", false),
            ("NVIDIA A100 80GB PCIe", "h200", false),
        ] {
            assert_eq!(model_matches(name, word), fits, "{name} / {word}");
        }
    }

    #[test]
    fn what_vendors_call_80_gb_fits_80_gib() {
        assert!(memory_fits(Bytes::mib(81559), Bytes::gib(80)));
        assert!(memory_fits(Bytes::mib(24564), Bytes::gib(24)));
        assert!(memory_fits(Bytes::mib(23028), Bytes::gib(24)));
        assert!(memory_fits(Bytes::mib(15360), Bytes::gib(16)));
        assert!(!memory_fits(Bytes::mib(40960), Bytes::gib(80)));
        assert!(!memory_fits(Bytes::mib(81559), Bytes::gib(96)));
    }
}
