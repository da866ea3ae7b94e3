//! The program of an agent, which speaks JSON-RPC with the server.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::home::{TestHome, ended};

/// The agent's program, with the server that it started.
pub(crate) struct Agent {
    pub(crate) server: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Agent {
    /// Starts the server as this device, without a handshake.
    pub(crate) fn start(home: &TestHome, device: &str) -> Self {
        Self::spawn(home.command(&["mcp", "--as", device]))
    }

    /// Starts the server with this command, without a handshake.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut server =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take(), server.stdout.take().unwrap());
        Self { server, input, output: BufReader::new(output).lines(), next: 0 }
    }

    pub(crate) fn connected(home: &TestHome, device: &str) -> Self {
        let mut agent = Self::start(home, device);
        let answer = agent.initialize("2025-06-18");
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        agent
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", &params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer
    }

    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn receive(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&request.to_string());
        self.next
    }

    /// Sends a request and returns its answer.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool that succeeds.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{tool}: {answer}");
        // Clients without structured content read the same as text.
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails; returns what the model reads.
    pub(crate) fn fail(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes standard input; the server has to end by itself.
    pub(crate) fn close(mut self) {
        drop(self.input.take());
        assert!(ended(&mut self.server).success());
    }
}
