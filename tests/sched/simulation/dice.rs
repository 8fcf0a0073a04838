//! The only source of chance: everything that happens follows from the seed.

/// A small seeded generator (splitmix).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to below `n`; 0 if there is nothing below it.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    pub(super) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    pub(super) fn per_mille(&mut self, n: u64) -> bool {
        self.below(1_000) < n
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    /// Mostly short, at times a thousand times as long: what takes long is rare, and matters.
    pub(super) fn long_tail(&mut self, usual: u64) -> u64 {
        let factor = [1, 1, 1, 1, 10, 100, 1_000][self.below(7) as usize];
        self.below(usual * factor + 1)
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for ix in (1..items.len()).rev() {
            items.swap(ix, self.below(ix as u64 + 1) as usize);
        }
    }
}
