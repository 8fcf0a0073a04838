//! The sample jobs, inside the program: one file to copy, and the demo works anywhere.

/// Path below `sample-jobs/`, and text.
pub(super) const FILES: &[(&str, &str)] = &[
    ("classify-night.yaml", include_str!("../../sample-jobs/classify-night.yaml")),
    ("denoise-footage/denoise.sh", include_str!("../../sample-jobs/denoise-footage/denoise.sh")),
    ("denoise-footage/job.yaml", include_str!("../../sample-jobs/denoise-footage/job.yaml")),
    ("denoise-footage/median.awk", include_str!("../../sample-jobs/denoise-footage/median.awk")),
    ("denoise-footage/shoot.awk", include_str!("../../sample-jobs/denoise-footage/shoot.awk")),
    ("estimate-pi.yaml", include_str!("../../sample-jobs/estimate-pi.yaml")),
    ("forecast-demand.yaml", include_str!("../../sample-jobs/forecast-demand.yaml")),
    ("morning-report.yaml", include_str!("../../sample-jobs/morning-report.yaml")),
    ("plan-tour.yaml", include_str!("../../sample-jobs/plan-tour.yaml")),
    ("price-option.yaml", include_str!("../../sample-jobs/price-option.yaml")),
    ("render-fractal.yaml", include_str!("../../sample-jobs/render-fractal.yaml")),
    ("train-classifier/data.awk", include_str!("../../sample-jobs/train-classifier/data.awk")),
    ("train-classifier/job.yaml", include_str!("../../sample-jobs/train-classifier/job.yaml")),
    ("train-classifier/train.awk", include_str!("../../sample-jobs/train-classifier/train.awk")),
    ("verify-archive.yaml", include_str!("../../sample-jobs/verify-archive.yaml")),
];

/// What is dropped, in this order, and how it ends: `NAME OUTCOME` lines.
pub(super) const EXPECTED: &str = include_str!("../../sample-jobs/expected.txt");

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_below_sample_jobs_is_inside() {
        fn walk(dir: &Path, found: &mut Vec<String>, base: &Path) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found, base);
                } else {
                    found.push(path.strip_prefix(base).unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-jobs");
        let mut found = Vec::new();
        walk(&base, &mut found, &base);
        found.retain(|file| file != "README.md" && file != "expected.txt");
        found.sort();
        let mut inside: Vec<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        inside.sort();
        assert_eq!(found, inside);
    }
}
