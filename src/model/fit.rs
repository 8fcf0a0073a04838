//! Whether a card is what a request asks for: one rule for the checker and the scheduler.

use super::Bytes;

/// Whether `word` is one of the device name's words, without regard to case.
///
/// Words end at the borders between letters, digits and everything else: `a100`, `80gb` and `pcie` are words of
/// `NVIDIA A100 80GB PCIe`, and `a10` is not.
pub fn model_matches(device_name: &str, word: &str) -> bool {
    let name = device_name.to_lowercase();
    let word = word.trim().to_lowercase();
    if word.is_empty() {
        return false;
    }
    let bytes = name.as_bytes();
    let border = |at: usize| {
        at == 0 || at == bytes.len() || class(bytes[at - 1]) != class(bytes[at]) || class(bytes[at]) == 0
    };
    name.match_indices(&word).any(|(at, hit)| border(at) && border(at + hit.len()))
}

const fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 0,
    }
}

/// Whether a card that reports `card` is what somebody who asks for `asked` means: 93 % of it fits, because an "80 GB"
/// card reports 81,559 MiB and a "24 GB" one 23,028.
pub const fn memory_fits(card: Bytes, asked: Bytes) -> bool {
    card.0 as u128 * 100 >= asked.0 as u128 * 93
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_a_word_of_the_name() {
        let name = "NVIDIA A100 80GB PCIe";
        for (word, hit) in
            [("a100", true), ("A100", true), ("80gb", true), ("pcie", true), ("a10", false), ("100", true)]
        {
            assert_eq!(model_matches(name, word), hit, "{word}");
        }
        assert!(model_matches("NVIDIA H100 80GB HBM3", "h100"));
        assert!(!model_matches("NVIDIA L40S", "l4"));
        assert!(!model_matches(name, ""));
    }

    #[test]
    fn what_vendors_call_eighty_gigabytes_fits_eighty_gibibytes() {
        assert!(memory_fits(Bytes::mib(81_559), Bytes::gib(80)));
        assert!(memory_fits(Bytes::mib(23_028), Bytes::gib(24)));
        assert!(!memory_fits(Bytes::mib(15_360), Bytes::gib(24)));
    }
}
