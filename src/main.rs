//! The program: dispatches its own processes before anything else is touched, then hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else of the program is touched: a supervisor is small.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "supervise") {
        return ExitCode::from(overnight::supervisor::main());
    }
    if let Some(code) = overnight::app::internal(std::env::args_os()) {
        return code;
    }
    if let Err(report) = color_eyre::install() {
        return overnight::app::complain(&report.to_string());
    }
    overnight::app::main(std::env::args_os())
}
