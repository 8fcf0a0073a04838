//! What eyes that see fewer colours see, by the matrices of Machado, Oliveira and Fernandes (2009) at full severity.

use super::colour::{lab, linear};

/// How colours are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// As most people do.
    Normal,
    /// Without the cones for long waves: red is dark.
    Protan,
    /// Without the cones for middle waves: red and green are alike.
    Deutan,
    /// Without the cones for short waves: blue and green are alike.
    Tritan,
}

impl Sight {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Protan, Self::Deutan, Self::Tritan];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Protan => "protan",
            Self::Deutan => "deutan",
            Self::Tritan => "tritan",
        }
    }

    const fn matrix(self) -> [[f64; 3]; 3] {
        match self {
            Self::Normal => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Self::Protan => [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
            Self::Deutan => [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
            Self::Tritan => [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        }
    }

    /// How far apart two colours look: CIE76.
    pub fn distance(self, a: [u8; 3], b: [u8; 3]) -> f64 {
        let seen = |colour: [u8; 3]| {
            let light = colour.map(linear);
            let row = |row: [f64; 3]| row.iter().zip(light).map(|(m, c)| m * c).sum::<f64>().clamp(0.0, 1.0);
            lab(self.matrix().map(row))
        };
        seen(a).iter().zip(seen(b)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }
}

/// Whom a theme promises to be safe for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// [`Sight::Protan`].
    Protan,
    /// [`Sight::Deutan`].
    Deutan,
    /// [`Sight::Tritan`].
    Tritan,
    /// People who need 7:1.
    LowVision,
}

impl Need {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Protan, Self::Deutan, Self::Tritan, Self::LowVision];

    /// Its name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protan => Sight::Protan.name(),
            Self::Deutan => Sight::Deutan.name(),
            Self::Tritan => Sight::Tritan.name(),
            Self::LowVision => "low-vision",
        }
    }

    /// The eyes it is about.
    pub const fn sight(self) -> Option<Sight> {
        match self {
            Self::Protan => Some(Sight::Protan),
            Self::Deutan => Some(Sight::Deutan),
            Self::Tritan => Some(Sight::Tritan),
            Self::LowVision => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures that were found by another implementation.
    #[test]
    fn distances_are_those_that_were_measured() {
        let (run, fail) = ([0x36, 0x7c, 0xf8], [0xc8, 0x6b, 0x07]);
        for (sight, figure) in
            [(Sight::Normal, 130.0), (Sight::Protan, 121.0), (Sight::Deutan, 134.0), (Sight::Tritan, 91.0)]
        {
            assert!((sight.distance(run, fail) - figure).abs() < 1.0, "{sight:?}");
        }
        // The xterm pair that nearly everybody uses.
        let (green, red) = ([0, 205, 0], [205, 0, 0]);
        assert!(Sight::Normal.distance(green, red) > 140.0);
        assert!(Sight::Deutan.distance(green, red) < 30.0);
    }

    #[test]
    fn whoever_sees_nothing_different_measures_nothing() {
        for sight in Sight::ALL {
            assert!(sight.distance([1, 2, 3], [1, 2, 3]) < 1e-9);
            assert!(sight.distance([0, 0, 0], [255, 255, 255]) > 99.0, "{sight:?}");
        }
    }
}
