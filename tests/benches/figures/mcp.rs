//! The Model Context Protocol beside the gRPC API that it calls: how soon the first answer comes, and how long a search
//! takes.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{
    RUNS,
    client::Client,
    median, print_line,
    process::{DaemonProcess, run, satchel_program},
};

/// The device as which both clients call.
const DEVICE: &str = "bench";
/// Searches of one run.
const SEARCHES: usize = 500;
/// Words that generated exports contain.
const QUERIES: [&str; 5] = ["bread", "garden OR river", "the", "recipe", "\"a b\""];

/// A server that this program has started, as the program of an agent does.
struct Server {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Server {
    /// Starts the server and returns how long its first answer took, in milliseconds.
    fn start(program: &Path, data: &Path) -> Result<(Self, f64)> {
        let begun = Instant::now();
        let mut process = Command::new(program)
            .arg("--data-dir")
            .arg(data)
            .args(["mcp", "--as", DEVICE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) =
            (process.stdin.take().context("input")?, process.stdout.take().context("output")?);
        let mut server = Self { process, input, output: BufReader::new(output).lines(), next: 0 };
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.request("initialize", &params)?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        server.request("tools/list", &json!({}))?;
        Ok((server, milliseconds(begun)))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}")?;
        Ok(self.input.flush()?)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))?;
        let answer = self.output.next().context("the server has ended")??;
        Ok(serde_json::from_str(&answer)?)
    }

    fn search(&mut self, query: &str) -> Result<()> {
        let call = json!({"name": "search", "arguments": {"query": query}});
        let answer = self.request("tools/call", &call)?;
        ensure!(answer["result"]["structuredContent"]["hits"].is_array(), "{answer}");
        Ok(())
    }

    fn stop(self) -> Result<()> {
        let Self { mut process, input, .. } = self;
        drop(input);
        ensure!(process.wait()?.success(), "the server failed");
        Ok(())
    }
}

pub(crate) fn all(folder: &Path, megabytes: u64) -> Result<()> {
    let (program, data, export) = (satchel_program()?, folder.join("mcp-data"), folder.join("mcp-export"));
    satchel_tests::generate::chatgpt(&export, megabytes * 200_000, 1)?;
    let words = ["--data-dir".as_ref(), data.as_os_str(), "import".as_ref(), export.as_os_str()];
    run(&program, &words)?;
    let daemon = DaemonProcess::start(&program, &data)?;
    let client = Client::connect(&data)?;
    client.create_token(DEVICE)?;
    let (mut starts, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (mut server, first) = Server::start(&program, &data)?;
        starts.push(first);
        let (mut mcp, mut grpc) = (Vec::new(), Vec::new());
        for at in 0..SEARCHES {
            let query = QUERIES[at % QUERIES.len()];
            let begun = Instant::now();
            server.search(query)?;
            mcp.push(milliseconds(begun));
            let begun = Instant::now();
            client.search_as(DEVICE, query)?;
            grpc.push(milliseconds(begun));
        }
        ours.push(p99(mcp));
        theirs.push(p99(grpc));
        server.stop()?;
    }
    let (start, ours, theirs) = (median(starts), median(ours), median(theirs));
    print_line(&format!(
        "mcp: first answer {start:.0} ms after the start; a search p99 {ours:.1} ms, over gRPC {theirs:.1} ms, ratio {:.2}",
        ours / theirs
    ));
    daemon.stop()
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1_000.0
}

fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * 99 / 100]
}
