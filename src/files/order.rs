//! stub
/// `overnight collect`.
pub fn collect_main() -> u8 {
    1
}
