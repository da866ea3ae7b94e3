//! Random requests for every method, as every caller: the daemon answers each of them, names a known reason for each
//! error, and tells nobody of a record that the caller does not see.
//!
//! `SATCHEL_FUZZ_REQUESTS=N` makes N requests for each caller, and `SATCHEL_FUZZ_SEED=N` others than usual. A failure
//! names the seed and shows the request.

mod call;
mod generate;
mod oracle;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};
use satchel_proto::v1::{self, operation_service_client::OperationServiceClient};
use satchel_tests::{
    generate::Rng,
    operation,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::{Code, Status, transport::Channel};

use self::generate::Generator;
use crate::device_access::{
    callers::{self, Caller, CallerKind},
    records::Records,
};

/// Requests of each caller in an ordinary run.
const REQUESTS: u64 = 400;
const SEED: u64 = 18;
/// Pause of a device that made all the calls that it may make.
const PAUSE: Duration = Duration::from_millis(200);
/// Connections for one call of a client without a certificate.
const MAX_CONNECTIONS: u32 = 3;
/// How long the work that the requests started may take in the end.
const WORK_TIMEOUT: Duration = Duration::from_mins(2);
/// Methods that do much work on the machine each time. A caller who may use them calls each only this many times.
const COSTLY_CALLS: u64 = 10;
const COSTLY: [(&str, &str); 4] = [
    ("/satchel.v1.ExportService/CreateExport", "writes the whole store, or derives a key from a passphrase"),
    ("/satchel.v1.ExportService/VerifyExport", "may derive a key from a passphrase"),
    ("/satchel.v1.AdminService/CreateBackup", "copies the data directory"),
    ("/satchel.v1.AdminService/VerifyStore", "reads the whole store"),
];

/// Methods by which a caller that may not read everything stores texts of its own.
const STORES_TEXT: [&str; 3] = ["CreateMemory", "RecordConversation", "AppendMessages"];

/// Who makes requests.
struct Requester {
    name: String,
    /// What it may see.
    kind: CallerKind,
    channel: Channel,
}

/// What the requests of a caller came to.
#[derive(Debug, Default)]
struct Tally {
    codes: BTreeMap<i32, u64>,
    slowest: Duration,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_random_request_gets_a_proper_answer() -> Result<()> {
    let (requests, seed) = (setting("SATCHEL_FUZZ_REQUESTS", REQUESTS), setting("SATCHEL_FUZZ_SEED", SEED));
    let daemon = listening_daemon().await?;
    let records = Records::create(&daemon).await?;
    let spare = TestDevice::pair(&daemon, "spare", policy(v1::DeviceRole::Reader)).await?;
    let generator = Generator::new(&daemon, &records, &spare)?;
    let mut requesters = vec![Requester {
        name: "the owner, over the socket".to_owned(),
        kind: CallerKind::Owner,
        channel: daemon.channel.clone(),
    }];
    for Caller { kind, channel } in Caller::all(&daemon).await? {
        requesters.push(Requester { name: format!("{kind:?}"), kind, channel });
    }
    let (owners, others): (Vec<_>, Vec<_>) =
        requesters.into_iter().partition(|requester| requester.kind == CallerKind::Owner);
    // Owners change what others may see, so they come last.
    for group in [others, owners] {
        let run = |requester| fuzz(requester, &generator, &records, (requests, seed));
        for outcome in join_all(group.iter().map(run)).await {
            outcome?;
        }
    }
    wait_for_work(&daemon).await?;
    let check = operation::verify_store(&daemon.channel).await?;
    ensure!(check.problems.is_empty(), "the store is damaged: {check:?}");
    let folder = daemon.stop().await?;
    // It starts again on what the requests left behind.
    TestDaemon::start_in(folder).await?.stop().await?;
    Ok(())
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all = Vec::new();
    let mut stream = std::pin::pin!(futures.map(Box::pin).collect::<Vec<_>>());
    // Each is polled whenever one is woken: there are only a few.
    std::future::poll_fn(|context| {
        stream.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => {
                all.push(value);
                false
            }
            std::task::Poll::Pending => true,
        });
        if stream.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    all
}

/// Makes the requests of one caller.
async fn fuzz(
    requester: &Requester,
    generator: &Generator,
    records: &Records,
    (requests, seed): (u64, u64),
) -> Result<()> {
    let (mut tally, began) = (Tally::default(), Instant::now());
    let mut written = BTreeSet::new();
    let methods: Vec<MethodDescriptor> = generator.methods().collect();
    let (costly, usual): (Vec<_>, Vec<_>) =
        methods.into_iter().partition(|method| requester.pays_for(&call::path(method)));
    let may = |method: &MethodDescriptor| requester.may_use(&call::path(method));
    let allowed: Vec<_> = usual.iter().filter(|method| may(method)).cloned().collect();
    let mut calls = Vec::new();
    for number in 0..requests {
        // Each method has its turn; most of the calls are ones that the caller may make.
        let methods = if number % 4 == 0 || allowed.is_empty() { &usual } else { &allowed };
        let index = if number % 4 == 0 { number / 4 } else { number };
        calls.push((number, &methods[usize::try_from(index)? % methods.len()]));
    }
    let extra =
        costly.iter().flat_map(|method| (0..COSTLY_CALLS.min(requests)).map(move |number| (number, method)));
    for (number, method) in calls.into_iter().chain(extra) {
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash(&requester.name);
        let request = generator.request(&method.input(), &mut Rng::new(seed));
        // What a caller wrote itself, such as the title of a conversation that it records, it may read back.
        if STORES_TEXT.contains(&method.name()) {
            written.extend(records.canaries_in(&request, &[]));
        }
        let answer = requester.call(method, &request).await;
        let answer = answer.and_then(|answer| {
            oracle::check(&answer, requester, records, (&request, &written)).map(|()| answer)
        });
        let answer = answer.with_context(|| {
            let shown = DynamicMessage::decode(method.input(), request.as_slice());
            let shown = shown.map_or_else(|error| error.to_string(), |message| show(&message));
            let bytes = &request[..request.len().min(300)];
            format!(
                "{}: request {number} of {}, seed {seed}: {} bytes {bytes:02x?}\n{shown:.2000}",
                call::path(method),
                requester.name,
                request.len()
            )
        })?;
        tally.slowest = tally.slowest.max(answer.took);
        *tally.codes.entry(answer.code().into()).or_default() += 1;
    }
    let (name, took) = (&requester.name, began.elapsed());
    writeln!(std::io::stderr(), "{name}: {requests} requests in {took:?}, {tally:?}")?;
    tally.check(requester.kind, requests)
}

impl Tally {
    /// The test would be void if all requests were refused, or none.
    fn check(&self, kind: CallerKind, requests: u64) -> Result<()> {
        let of = |code: Code| self.codes.get(&code.into()).copied().unwrap_or(0);
        let refused = of(Code::Unauthenticated) + of(Code::PermissionDenied);
        match kind {
            CallerKind::Nobody | CallerKind::Revoked => ensure!(refused * 2 > requests, "{kind:?}: {self:?}"),
            CallerKind::Owner => {
                ensure!(of(Code::Ok) * 10 > requests && refused * 4 < requests, "{kind:?}: {self:?}");
            }
            _ => ensure!(of(Code::Ok) * 50 > requests && refused > 0, "{kind:?}: {self:?}"),
        }
        Ok(())
    }
}

impl Requester {
    /// Calls a method, again if the device has made all the calls that it may make, or if the connection has ended, as that
    /// of a client without a certificate does after a minute.
    async fn call(&self, method: &MethodDescriptor, request: &[u8]) -> Result<call::Answer> {
        let mut connections = 0;
        loop {
            let answer = call::call(&self.channel, method, request).await?;
            let Some(status) = &answer.status else { return Ok(answer) };
            if self.kind == CallerKind::Nobody && is_of_transport(status) && connections < MAX_CONNECTIONS {
                connections += 1;
            } else if !status.message().contains("calls in a second") {
                return Ok(answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns whether a method is costly, and this caller may use it.
    fn pays_for(&self, path: &str) -> bool {
        COSTLY.iter().any(|(costly, _)| *costly == path) && self.may_use(path)
    }

    fn may_use(&self, path: &str) -> bool {
        let scope = satchel_proto::method(path).map(|method| method.required_scope);
        let scope = scope.and_then(|scope| v1::Scope::try_from(scope).ok()).unwrap_or_default();
        callers::has_scope(self.kind, scope)
    }
}

/// Returns whether the connection has ended, instead of an answer.
fn is_of_transport(status: &Status) -> bool {
    std::error::Error::source(status).is_some_and(<dyn std::error::Error>::is::<tonic::transport::Error>)
}

fn show(message: &DynamicMessage) -> String {
    let fields = message.fields().map(|(field, value)| match value {
        prost_reflect::Value::Message(inner) => format!("{}: {{{}}}", field.name(), show(inner)),
        value => format!("{}: {value:?}", field.name()),
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// FNV-1a: the order and the requests differ between callers, and are the same in each run.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Waits until the operations that the requests started have ended.
async fn wait_for_work(daemon: &TestDaemon) -> Result<()> {
    let began = Instant::now();
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    loop {
        let request = v1::ListOperationsRequest { page_size: 1_000, ..Default::default() };
        let operations = client.list_operations(request).await?.into_inner().operations;
        if operations.iter().all(v1::Operation::ended) {
            return Ok(());
        }
        ensure!(began.elapsed() < WORK_TIMEOUT, "operations do not end: {operations:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The descriptors of the methods.
fn descriptors() -> Result<DescriptorPool> {
    Ok(DescriptorPool::decode(satchel_proto::DESCRIPTOR_SET)?)
}

/// Returns the folder in which requests may read and write.
fn playground(daemon: &TestDaemon) -> &Path {
    daemon.folder.path()
}
