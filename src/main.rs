use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else of the program is touched: a supervisor is small.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "supervise") {
        return ExitCode::from(overnight::supervisor::main());
    }
    ExitCode::SUCCESS
}
