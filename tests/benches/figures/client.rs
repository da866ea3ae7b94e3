//! A client for programs that wait: it queries a daemon over its socket.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::{
    DEVICE_HEADER,
    integers::unsigned,
    v1::{
        self, DeviceRole, Operation, OperationPhase, Source, admin_service_client::AdminServiceClient,
        device_service_client::DeviceServiceClient, import_service_client::ImportServiceClient,
        operation_service_client::OperationServiceClient, search_service_client::SearchServiceClient,
    },
};
use satchel_tests::test_device::policy;
use tokio::runtime::Runtime;
use tonic::{Request, transport::Channel};

/// Pause between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Upper limit for every wait; no measurement takes longer.
const WAIT_TIMEOUT: Duration = Duration::from_hours(2);

/// A connection to a daemon.
pub(crate) struct Client {
    runtime: Runtime,
    channel: Channel,
}

/// The course of a job as a client sees it.
pub(crate) struct FollowedJob {
    pub(crate) job: Operation,
    pub(crate) seconds: f64,
    /// Longest time without any progress, in seconds, and the phase in which it occurred.
    pub(crate) longest_stall: (f64, OperationPhase),
}

impl Client {
    pub(crate) fn connect(data: &Path) -> Result<Self> {
        let runtime = Runtime::new()?;
        let channel = runtime.block_on(satchel_server::connect::connect(data))?;
        Ok(Self { runtime, channel })
    }

    fn imports(&self) -> ImportServiceClient<Channel> {
        ImportServiceClient::new(self.channel.clone())
    }

    fn operations(&self) -> OperationServiceClient<Channel> {
        OperationServiceClient::new(self.channel.clone())
    }

    /// Returns the watched folder.
    pub(crate) fn source(&self) -> Result<Source> {
        let answer = self.runtime.block_on(self.imports().list_sources(v1::ListSourcesRequest::default()))?;
        answer.into_inner().sources.into_iter().next().context("a watched folder")
    }

    /// Waits until the watched folder matches `wanted`. Returns the longest time, in seconds, in which the number of
    /// imported files did not change.
    pub(crate) fn wait_until(&self, wanted: impl Fn(&Source) -> bool) -> Result<f64> {
        let (begun, mut longest) = (Instant::now(), 0_f64);
        let (mut imported, mut moved) = (0, Instant::now());
        loop {
            let source = self.source()?;
            if source.imported != imported {
                (imported, moved) = (source.imported, Instant::now());
            }
            longest = longest.max(moved.elapsed().as_secs_f64());
            if source.scanned && wanted(&source) {
                return Ok(longest);
            }
            ensure!(begun.elapsed() < WAIT_TIMEOUT, "timed out: {source:?}");
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub(crate) fn conversations(&self) -> Result<u64> {
        Ok(unsigned(self.stats()?.conversations))
    }

    pub(crate) fn messages(&self) -> Result<u64> {
        Ok(unsigned(self.stats()?.messages))
    }

    fn stats(&self) -> Result<v1::GetStatsResponse> {
        let mut admin = AdminServiceClient::new(self.channel.clone());
        Ok(self.runtime.block_on(admin.get_stats(v1::GetStatsRequest {}))?.into_inner())
    }

    /// Registers a device that may read everything.
    pub(crate) fn create_token(&self, name: &str) -> Result<()> {
        let tomorrow = SystemTime::now() + Duration::from_hours(24);
        // The API refuses digits below the microsecond.
        let expire_time = prost_types::Timestamp { nanos: 0, ..tomorrow.into() };
        let request = v1::CreateTokenRequest {
            name: name.to_owned(),
            policy: Some(policy(DeviceRole::Reader)),
            expire_time: Some(expire_time),
        };
        let mut devices = DeviceServiceClient::new(self.channel.clone());
        self.runtime.block_on(devices.create_token(request))?;
        Ok(())
    }

    /// Searches as a device, like the tool of the Model Context Protocol does.
    pub(crate) fn search_as(&self, device: &str, query: &str) -> Result<v1::SearchResponse> {
        let mut request = Request::new(v1::SearchRequest {
            query: query.to_owned(),
            page_size: 10,
            snippet_bytes: 400,
            wait_until_current: true,
            ..v1::SearchRequest::default()
        });
        request.metadata_mut().insert(DEVICE_HEADER, device.parse()?);
        let mut search = SearchServiceClient::new(self.channel.clone());
        Ok(self.runtime.block_on(search.search(request))?.into_inner())
    }

    /// Starts an import and returns the id of its job.
    pub(crate) fn start_import(&self, path: &Path) -> Result<String> {
        let path = path.to_str().context("a path of text")?.to_owned();
        let request = v1::CreateImportRequest { path, ..v1::CreateImportRequest::default() };
        let answer = self.runtime.block_on(self.imports().create_import(request))?;
        Ok(answer.into_inner().operation.context("an operation")?.id)
    }

    /// Requests that a job stops.
    pub(crate) fn cancel(&self, job: &str) -> Result<()> {
        let request = v1::CancelOperationRequest { id: job.to_owned() };
        self.runtime.block_on(self.operations().cancel_operation(request))?;
        Ok(())
    }

    /// Follows a job until it has ended or `enough` returns true.
    pub(crate) fn follow(&self, job: &str, enough: impl Fn(&Operation) -> bool) -> Result<FollowedJob> {
        let start = Instant::now();
        let request = v1::WatchOperationRequest { id: job.to_owned(), min_interval: None };
        self.runtime.block_on(async {
            let mut views = self.operations().watch_operation(request).await?.into_inner();
            let (mut last, mut seen, mut moved) = (None, None, Instant::now());
            let mut silence = (0.0, OperationPhase::Unspecified);
            while let Some(view) = views.message().await? {
                let job = view.operation.context("an operation")?;
                let progress = job.progress;
                if progress != seen {
                    let still = moved.elapsed().as_secs_f64();
                    if still > silence.0 {
                        silence = (still, seen.map_or(OperationPhase::Unspecified, |seen| seen.phase()));
                    }
                    (seen, moved) = (progress, Instant::now());
                }
                let over = enough(&job);
                last = Some(job);
                if over {
                    break;
                }
            }
            Ok(FollowedJob {
                job: last.context("news of the job")?,
                seconds: start.elapsed().as_secs_f64(),
                longest_stall: silence,
            })
        })
    }
}
