//! A small HTTP server that answers as a test says.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Clone)]
pub(super) struct Received {
    pub(super) line: String,
    /// The names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
    /// The number of its connection.
    pub(super) connection: usize,
    pub(super) at: Instant,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn texts(&self) -> Vec<String> {
        let input = self.body["input"].as_array().unwrap();
        input.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }
}

/// An answer.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// What happens afterwards.
    pub(super) then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// The connection can be used again.
    Keep,
    /// It is closed without a word.
    Close,
    /// It is closed before the last byte.
    CutOff,
    /// Nothing is sent at all; the client closes.
    Hang,
}

impl Reply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), then: Then::Keep }
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::new(status, json!({"error": {"message": message, "type": "test"}}).to_string())
    }

    pub(super) fn vectors(vectors: &[Vec<f32>]) -> Self {
        let data = vectors.iter().enumerate();
        let data: Vec<Value> =
            data.map(|(index, vector)| json!({"index": index, "embedding": vector})).collect();
        Self::new(200, json!({"object": "list", "data": data}).to_string())
    }

    /// What a server answers if all is well.
    pub(super) fn embeddings(request: &Received) -> Self {
        Self::vectors(&request.texts().iter().map(|text| vector_of(text)).collect::<Vec<_>>())
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    pub(super) fn hang() -> Self {
        Self::new(200, "").then(Then::Hang)
    }
}

/// The vector of a text.
pub(super) fn vector_of(text: &str) -> Vec<f32> {
    let sum: u32 = text.bytes().map(u32::from).sum();
    vec![f32::from(u16::try_from(text.len()).unwrap()), f32::from(u16::try_from(sum % 1_000).unwrap()), 1.5]
}

type Handler = dyn Fn(&Received) -> Reply + Send + Sync;

pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    handler: Box<Handler>,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    /// Connections that the client closed.
    closed: AtomicUsize,
    stopping: AtomicBool,
}

impl Server {
    pub(super) fn start(handler: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            received: Mutex::default(),
            connections: AtomicUsize::default(),
            closed: AtomicUsize::default(),
            stopping: AtomicBool::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let (shared, stream) = (Arc::clone(&accepting), stream.unwrap());
                thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    /// Starts a server that embeds everything.
    pub(super) fn healthy() -> Self {
        Self::start(Reply::embeddings)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// Returns the texts of each request.
    pub(super) fn batches(&self) -> Vec<Vec<String>> {
        self.received().iter().map(Received::texts).collect()
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    pub(super) fn closed(&self) -> usize {
        self.shared.closed.load(Ordering::SeqCst)
    }
}

/// Its port is free afterwards.
impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let connection = self.connections.fetch_add(1, Ordering::SeqCst);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(request) = read_request(&mut reader, connection) {
            self.received.lock().unwrap().push(request.clone());
            let reply = (self.handler)(&request);
            if reply.then == Then::Hang {
                // Returns nothing when the client closes.
                drop(read_request(&mut reader, connection));
                break;
            }
            if !write_reply(&stream, &reply) || reply.then != Then::Keep {
                return;
            }
        }
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns `None` if the client closed the connection.
fn read_request(reader: &mut BufReader<TcpStream>, connection: usize) -> Option<Received> {
    let mut read_line = || {
        let mut line = String::new();
        let length = reader.read_line(&mut line).ok()?;
        (length > 0).then(|| line.trim_end().to_owned())
    };
    let line = read_line()?;
    let mut headers = Vec::new();
    loop {
        let header = read_line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Received { line, headers, body, connection, at: Instant::now() })
}

/// Returns whether the client took all of it.
fn write_reply(mut stream: &TcpStream, reply: &Reply) -> bool {
    let mut head = format!("HTTP/1.1 {} Test\r\nContent-Length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let cut = usize::from(reply.then == Then::CutOff);
    let whole = [head.as_bytes(), b"\r\n", &reply.body[..reply.body.len() - cut]].concat();
    stream.write_all(&whole).is_ok()
}
