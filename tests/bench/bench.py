#!/usr/bin/env python3
"""Measures speed and cost of the built binary over simulated GPUs, beside a spawn loop and an fsync loop of the same run.

    cargo build --release && tests/bench/bench.py            # some three minutes
    tests/bench/bench.py --smoke                             # some twenty seconds; figures mean little

Everything runs in a folder of its own below --dir, which should be on the disk where the state would be. The targets are
printed beside the figures and never fail the run: a busy machine is no regression. What does not work at all does.
"""

import argparse, fcntl, json, os, pathlib, pty, select, shutil, statistics, struct, subprocess, sys, tempfile, termios, time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60

# The job: stamps the clock as its first act and as its last, and nothing else.
STAMP_C = r"""
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct timespec a, b;
    clock_gettime(CLOCK_REALTIME, &a);
    char text[64];
    int file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    clock_gettime(CLOCK_REALTIME, &b);
    int length = snprintf(text, sizeof text, "%lld %lld\n", a.tv_sec * 1000000000LL + a.tv_nsec, b.tv_sec * 1000000000LL + b.tv_nsec);
    return file < 0 || write(file, text, length) != length;
}
"""
STAMP_RS = r"""
use std::io::Write;
fn main() {
    let ns = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let a = ns();
    let path = std::env::args_os().nth(1).unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{a} {}\n", ns()).as_bytes()).unwrap();
}
"""


def build_stamp(folder):
    """Compiles the job; a C compiler starts fastest, rustc is there anyway."""
    stamp = folder / "stamp"
    if shutil.which("cc"):
        (folder / "stamp.c").write_text(STAMP_C)
        if subprocess.run(["cc", "-O1", "-static", "-o", stamp, folder / "stamp.c"], stderr=subprocess.DEVNULL).returncode == 0:
            return stamp
    (folder / "stamp.rs").write_text(STAMP_RS)
    subprocess.run(["rustc", "-O", "-o", stamp, folder / "stamp.rs"], check=True)
    return stamp


def wait_for(what, look, pause_s=0.0005):
    """Looks until `look` finds something; the pause between two looks is short enough not to show in a median."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(pause_s)
    sys.exit(f"there was never {what}")


def ms(values):
    """Median, 90 % quantile and maximum of nanoseconds, as milliseconds."""
    values = sorted(values)
    return {"median": statistics.median(values) / 1e6, "p90": values[int(0.9 * (len(values) - 1))] / 1e6, "max": values[-1] / 1e6}


def stamps(path):
    """First and last act of each job that stamped this file, in the order of their starts."""
    return sorted(tuple(map(int, line.split())) for line in path.read_text().splitlines())


class Bench:
    """One folder, one scheduler at a time."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.runs = binary, folder, 0
        self.stamp = build_stamp(folder)
        self.scheduler = None

    def start(self, gpus):
        self.runs += 1
        self.root = self.folder / f"root{self.runs}"
        self.staging = self.folder / f"staging{self.runs}"
        self.staging.mkdir()
        self.gate = self.folder / f"gate{self.runs}"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        said = open(self.folder / f"scheduler{self.runs}.out", "wb")
        self.scheduler = subprocess.Popen(
            self.argv("serve", "--gpus", gpus), stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=self.env)
        wait_for("a scheduler that answers", lambda: self.scheduler.poll() is not None or (self.root / ".state/overnight.sock").exists())
        if self.scheduler.poll() is not None:
            sys.exit(f"the scheduler ended: {(self.folder / f'scheduler{self.runs}.out').read_text()}")
        self.run("ls", "--json")

    def stop(self):
        """Jobs go on after a stop; they end because their gate opens."""
        subprocess.run(self.argv("stop"), env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.gate.touch()
        try:
            self.scheduler.wait(10)
        except subprocess.TimeoutExpired:
            self.scheduler.kill()
            self.scheduler.wait()
        self.scheduler = None

    def argv(self, *args):
        return [str(self.binary), "--root", str(self.root), *args]

    def run(self, *args):
        done = subprocess.run(self.argv(*args), env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{args} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def job(self, argv, gpus=1, limit="5m"):
        argv = ", ".join(json.dumps(str(word)) for word in argv)
        return f"work: {{run: [{argv}]}}\ndata: []\nrequest: {{gpus: {gpus}, cpus: 1, memory: 1GiB, for: {limit}}}\noutput: []\n"

    def stage(self, name, text):
        path = self.staging / f"{name}.yaml"
        path.write_text(text)
        return path

    def drop(self, path):
        """Renames a staged file into the inbox and says when."""
        target = self.root / "inbox" / path.name
        at = time.time_ns()
        os.rename(path, target)
        return at

    def block(self):
        """A job on every GPU that lasts until the gate opens."""
        shell = f"touch {self.gate}.holds; until [ -e {self.gate} ]; do sleep 0.05; done"
        self.drop(self.stage("block", self.job(["sh", "-c", shell], gpus="all", limit="30m")))
        wait_for("a running blocker", pathlib.Path(f"{self.gate}.holds").exists)

    def fill(self, count, prefix):
        """Drops `count` jobs at once and waits until the inbox is empty; returns how long that took."""
        out = self.folder / f"{prefix}.stamps"
        paths = [self.stage(f"{prefix}{ix}", self.job([self.stamp, out])) for ix in range(count)]
        began = time.monotonic()
        for path in paths:
            self.drop(path)
        wait_for("an empty inbox", lambda: not any(name.endswith(".yaml") for name in os.listdir(self.root / "inbox")), 0.02)
        return time.monotonic() - began, out

    # What a process costs, from /proc.

    def cpu_ms(self, pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def wakeups(self, pid):
        return sum(self.status(f"{pid}/task/{task}", "voluntary_ctxt_switches") for task in os.listdir(f"/proc/{pid}/task"))

    def status(self, pid, field, file="status"):
        for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        sys.exit(f"no {field} in /proc/{pid}/{file}")


def spawn_loop(stamp, folder, n):
    """What any scheduler must pay: fork and exec until the first instruction, and spawn + wait."""
    first, whole = [], []
    for _ in range(n):
        out = folder / "spawned"
        out.unlink(missing_ok=True)
        began = time.time_ns()
        subprocess.run([stamp, out], check=True, close_fds=False)
        whole.append(time.time_ns() - began)
        first.append(stamps(out)[0][0] - began)
    return ms(first), ms(whole)


def fsync_loop(folder, n):
    """What any durable scheduler must pay: 4 KiB appended and flushed."""
    times = []
    with open(folder / "flushed", "wb") as file:
        for _ in range(n):
            file.write(b"x" * 4096)
            began = time.time_ns()
            file.flush()
            os.fdatasync(file.fileno())
            times.append(time.time_ns() - began)
    return ms(times)


def drop_to_first(bench, n, rest_s, prefix):
    """A rename into the inbox until the job's first instruction."""
    times = []
    for ix in range(n):
        out = bench.folder / f"{prefix}{ix}.stamp"
        path = bench.stage(f"{prefix}{ix}", bench.job([bench.stamp, out]))
        time.sleep(rest_s)
        at = bench.drop(path)
        wait_for("a started job", lambda: out.exists() and out.stat().st_size)
        times.append(stamps(out)[0][0] - at)
    return ms(times)


def end_to_next(bench, n, prefix):
    """The last act of one job until the first of the next on the same GPU."""
    bench.block()
    _, out = bench.fill(n, prefix)
    bench.gate.touch()
    wait_for("the end of the line", lambda: out.exists() and len(out.read_text().splitlines()) == n, 0.02)
    acts = stamps(out)
    return ms([start - end for (_, end), (start, _) in zip(acts, acts[1:])])


def adding(bench, n, prefix):
    """One more job by the verb, and what it costs the scheduler in CPU."""
    path = bench.stage(prefix, bench.job([bench.stamp, bench.folder / "added.stamps"]))
    before, times = bench.cpu_ms(bench.scheduler.pid), []
    for _ in range(n):
        began = time.time_ns()
        bench.run("submit", str(path))
        times.append(time.time_ns() - began)
    return ms(times), (bench.cpu_ms(bench.scheduler.pid) - before) / n


def listing(bench, n):
    times = []
    for _ in range(n):
        began = time.time_ns()
        bench.run("ls")
        times.append(time.time_ns() - began)
    return ms(times)


def idle(bench, seconds):
    pid = bench.scheduler.pid
    time.sleep(2)
    cpu, wakeups = bench.cpu_ms(pid), bench.wakeups(pid)
    time.sleep(seconds)
    return bench.cpu_ms(pid) - cpu, bench.wakeups(pid) - wakeups


def supervisor_memory(bench):
    """RssAnon and PSS in KiB of one supervisor while its job runs, once it has given back what its start needed."""
    time.sleep(2)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            opened = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
            if b"supervise" in argv and any(path.startswith(str(bench.root)) for path in opened):
                return bench.status(pid, "RssAnon"), bench.status(pid, "Pss", "smaps_rollup")
        except OSError:
            continue  # ended meanwhile
    sys.exit("no supervisor found")


def dashboard_bytes(bench, seconds, cols=80, rows=24):
    """What an attached dashboard writes in so many seconds once its first screen is there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(bench.argv()[0], bench.argv(), dict(bench.env, COLORTERM="truecolor"))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read_for(span):
        count, until = 0, time.monotonic() + span
        while (left := until - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                data = os.read(terminal, 65536)
                count += len(data)
                if b"\x1b[6n" in data:
                    os.write(terminal, b"\x1b[1;1R")
        return count

    first = read_for(3)
    steady = read_for(seconds)
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # EIO: the dashboard has ended
    os.waitpid(pid, 0)
    os.close(terminal)
    if first == 0:
        sys.exit("the dashboard painted nothing")
    return steady / seconds


def task_spooler(bench, n):
    """The same two paths through task-spooler, which keeps nothing on disk."""
    env = dict(os.environ, TS_SOCKET=str(bench.folder / "tsp.socket"), TMPDIR=str(bench.folder))
    tsp = lambda *args: subprocess.run(["tsp", *map(str, args)], env=env, check=True, stdout=subprocess.DEVNULL)
    try:
        tsp("-n", "true")
        first = []
        for ix in range(n):
            out = bench.folder / f"tsp{ix}.stamp"
            time.sleep(0.03)
            at = time.time_ns()
            tsp("-n", bench.stamp, out)
            wait_for("a started job", lambda: out.exists() and out.stat().st_size)
            first.append(stamps(out)[0][0] - at)
        gate, out = bench.folder / "tsp.gate", bench.folder / "tsp.stamps"
        tsp("-n", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.02; done")
        for _ in range(n):
            tsp("-n", bench.stamp, out)
        gate.touch()
        wait_for("the end of the line", lambda: out.exists() and len(out.read_text().splitlines()) == n)
        acts = stamps(out)
        return ms(first), ms([start - end for (_, end), (start, _) in zip(acts, acts[1:])])
    finally:
        subprocess.run(["tsp", "-K"], env=env)


class Table:
    """Figures as they come, beside their targets."""

    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, target=None, spawn=None, detail=""):
        self.rows.append({"name": name, "value": value, "unit": unit, "target": target, "detail": detail})
        shown = f"{value:10.2f} {unit:9}" if isinstance(value, float) else f"{value:10d} {unit:9}"
        ratio = f"{value / spawn:6.1f}x" if spawn else " " * 7
        if target is None:
            verdict = ""
        else:
            kept = value >= target if unit.endswith("/s") and unit.startswith("files") else value <= target
            verdict = f"{'ok' if kept else 'OVER'} ({target:g})"
        print(f"{name:44} {shown} {ratio}  {verdict:14} {detail}".rstrip(), flush=True)

    def times(self, name, figures, target=None, spawn=None):
        self.add(name, figures["median"], "ms", target, spawn, f"p90 {figures['p90']:.2f}  max {figures['max']:.2f}")


def measure(bench, sizes, table):
    first, whole = spawn_loop(bench.stamp, bench.folder, sizes["n"])
    spawn = first["median"]
    table.times("spawn -> first instruction (baseline)", first, spawn=spawn)
    table.times("spawn + wait (baseline)", whole, spawn=spawn)
    table.times("4 KiB append + fdatasync (baseline)", fsync_loop(bench.folder, sizes["n"]), spawn=spawn)

    bench.start("simulated:4")
    table.add("scheduler RSS, empty", bench.status(bench.scheduler.pid, "VmRSS") / 1024, "MiB", 20)
    cpu, wakeups = idle(bench, sizes["idle_s"])
    table.add("idle: CPU", cpu, f"ms/{sizes['idle_s']}s", 0)
    table.add("idle: wakeups", wakeups, f"in {sizes['idle_s']}s", 0)
    table.add("idle dashboard, 80x24", dashboard_bytes(bench, sizes["idle_s"]), "B/s", 0)
    table.times("drop -> first instruction", drop_to_first(bench, sizes["n"], 0.03, "warm"), 5, spawn)
    table.times("drop -> first instruction, after 0.5 s idle", drop_to_first(bench, sizes["n"] // 5, 0.5, "cold"), 5, spawn)
    bench.stop()

    bench.start("simulated:1")
    table.times("end -> first instruction of the next", end_to_next(bench, sizes["n"], "next"), 5, spawn)
    bench.stop()

    if shutil.which("tsp"):
        first, following = task_spooler(bench, min(sizes["n"], 100))
        table.times("task-spooler: tsp -> first instruction", first, spawn=spawn)
        table.times("task-spooler: end -> next", following, spawn=spawn)
    else:
        print("task-spooler is not installed: no comparison", flush=True)

    bench.start("simulated:8")
    bench.block()
    anon, pss = supervisor_memory(bench)
    table.add("supervisor RssAnon", anon / 1024, "MiB", 1)
    table.add("supervisor PSS", pss / 1024, "MiB", 2)
    table.add("dashboard, 80x24, 8 GPUs busy", dashboard_bytes(bench, sizes["idle_s"]), "B/s", 614)
    bench.fill(10, "few")
    at_10, cpu_10 = adding(bench, sizes["few"], "at10")
    took, _ = bench.fill(sizes["burst"], "burst")
    table.add(f"{sizes['burst']} files dropped at once", sizes["burst"] / took, "files/s", 500)
    bench.fill(max(0, sizes["queue"] - sizes["burst"]), "rest")
    table.times(f"ls at {sizes['queue']} queued", listing(bench, sizes["few"]), 50)
    at_many, cpu_many = adding(bench, sizes["few"], "atmany")
    table.times("submit at 10 queued", at_10)
    table.times(f"submit at {sizes['queue']} queued", at_many, at_10["median"] * 1.5)
    table.add("scheduler CPU a submit, at 10 queued", cpu_10, "ms")
    table.add(f"scheduler CPU a submit, at {sizes['queue']} queued", cpu_many, "ms", cpu_10 * 1.5 + 1)
    table.add(f"scheduler RSS at {sizes['queue']} queued", bench.status(bench.scheduler.pid, "VmRSS") / 1024, "MiB", 60)
    bench.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", type=pathlib.Path, default=REPOSITORY / "target/release/overnight")
    parser.add_argument("--smoke", action="store_true", help="small numbers: does it work at all")
    parser.add_argument("--dir", type=pathlib.Path, help="where to work; default: the temporary folder")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()
    if not args.binary.is_file():
        sys.exit(f"no {args.binary}: cargo build --release")
    sizes = {"n": 300, "idle_s": 10, "few": 30, "burst": 1000, "queue": 10_000}
    if args.smoke:
        sizes = {"n": 20, "idle_s": 3, "few": 5, "burst": 100, "queue": 200}
    table = Table()
    with tempfile.TemporaryDirectory(prefix="overnight-bench-", dir=args.dir, ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip()
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {kind}, medians of {sizes['n']}; x = times a spawn", flush=True)
        bench = Bench(args.binary.resolve(), folder)
        try:
            measure(bench, sizes, table)
        finally:
            if bench.scheduler:
                bench.stop()
    if args.json:
        args.json.write_text(json.dumps(table.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
