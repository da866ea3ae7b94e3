//! The services of the daemon, called as one device.

use satchel_proto::{
    DEVICE_HEADER,
    v1::{
        conversation_service_client::ConversationServiceClient, memory_service_client::MemoryServiceClient,
        search_service_client::SearchServiceClient, watch_service_client::WatchServiceClient,
    },
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};

use super::ServeError;

type DeviceChannel = InterceptedService<Channel, AsDevice>;

/// Adds the header that names the device.
#[derive(Clone)]
pub(crate) struct AsDevice(Option<MetadataValue<Ascii>>);

impl Interceptor for AsDevice {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(device) = &self.0 {
            request.metadata_mut().insert(DEVICE_HEADER, device.clone());
        }
        Ok(request)
    }
}

impl AsDevice {
    /// Returns the header for this id or name; without one, the channel has credentials of its own.
    pub(crate) fn new(device: Option<&str>) -> Result<Self, ServeError> {
        let value =
            |name: &str| MetadataValue::try_from(name).map_err(|_| ServeError::DeviceName(name.to_owned()));
        Ok(Self(device.map(value).transpose()?))
    }
}

/// Creates the clients of services, for one request of the agent.
pub(crate) struct Clients {
    channel: Channel,
    device: AsDevice,
}

impl Clients {
    pub(crate) fn new(channel: Channel, device: AsDevice) -> Self {
        Self { channel, device }
    }

    pub(crate) fn memories(&self) -> MemoryServiceClient<DeviceChannel> {
        MemoryServiceClient::with_interceptor(self.channel.clone(), self.device.clone())
    }

    pub(crate) fn conversations(&self) -> ConversationServiceClient<DeviceChannel> {
        ConversationServiceClient::with_interceptor(self.channel.clone(), self.device.clone())
    }

    pub(crate) fn search(&self) -> SearchServiceClient<DeviceChannel> {
        SearchServiceClient::with_interceptor(self.channel.clone(), self.device.clone())
    }

    pub(crate) fn changes(&self) -> WatchServiceClient<DeviceChannel> {
        WatchServiceClient::with_interceptor(self.channel.clone(), self.device.clone())
    }
}
