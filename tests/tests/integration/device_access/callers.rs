//! The callers of the test: one of each kind.

use anyhow::Result;
use satchel_proto::v1::{self, DeviceRole, Scope};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, connect_without_certificate, policy},
};
use tonic::transport::Channel;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallerKind {
    /// A client without a certificate.
    Nobody,
    /// A device that was an owner's, and was revoked.
    Revoked,
    AgentA,
    AgentB,
    /// An agent that may also read conversations, of one platform.
    AgentWithConversations,
    /// A reader of one platform.
    ReaderOfPart,
    Reader,
    Owner,
}

pub(crate) struct Caller {
    pub(crate) kind: CallerKind,
    pub(crate) channel: Channel,
}

/// The platform of the reader and the agent that see a part.
pub(crate) const PART: &str = "part";

impl Caller {
    /// Pairs all kinds of callers.
    pub(crate) async fn all(daemon: &TestDaemon) -> Result<Vec<Self>> {
        let part = v1::DeviceSelection { platforms: vec![PART.to_owned()], ..Default::default() };
        let reader = v1::DevicePolicy { selection: Some(part.clone()), ..policy(DeviceRole::Reader) };
        let agent = v1::DevicePolicy {
            scopes: vec![Scope::MemoriesRead.into(), Scope::ConversationsRead.into()],
            selection: Some(part),
            ..policy(DeviceRole::Agent)
        };
        let mut callers = Vec::new();
        for (kind, name, policy) in [
            (CallerKind::Revoked, "revoked", policy(DeviceRole::Owner)),
            (CallerKind::AgentA, "agent-a", policy(DeviceRole::Agent)),
            (CallerKind::AgentB, "agent-b", policy(DeviceRole::Agent)),
            (CallerKind::AgentWithConversations, "agent-c", agent),
            (CallerKind::ReaderOfPart, "reader-of-part", reader),
            (CallerKind::Reader, "reader", policy(DeviceRole::Reader)),
            (CallerKind::Owner, "owner-device", policy(DeviceRole::Owner)),
        ] {
            let device = TestDevice::pair(daemon, name, policy).await?;
            if kind == CallerKind::Revoked {
                device.revoke(daemon).await?;
                let channel = connect_without_certificate(&device).await?;
                callers.push(Self { kind: CallerKind::Nobody, channel });
            }
            callers.push(Self { kind, channel: device.channel });
        }
        Ok(callers)
    }
}

/// Returns whether a caller has a permission by its policy.
pub(crate) fn has_scope(kind: CallerKind, scope: Scope) -> bool {
    let reads = matches!(scope, Scope::None | Scope::OfOperation | Scope::MemoriesRead);
    match kind {
        CallerKind::Nobody | CallerKind::Revoked => false,
        CallerKind::AgentA | CallerKind::AgentB => {
            // An agent that may record conversations reads those that it recorded.
            let conversations = matches!(scope, Scope::ConversationsWrite | Scope::ConversationsRead);
            reads || conversations || scope == Scope::MemoriesWrite
        }
        CallerKind::AgentWithConversations | CallerKind::ReaderOfPart | CallerKind::Reader => {
            reads || scope == Scope::ConversationsRead
        }
        // Only peers exchange changes.
        CallerKind::Owner => scope != Scope::Sync,
    }
}
