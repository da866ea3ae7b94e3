//! Changes of conversations, for those who may read them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use satchel_proto::v1;
use satchel_tests::{
    test_daemon::chatgpt_export,
    test_device::{TestDevice, listening_daemon, policy},
};

use crate::{follower::Follower, writers};

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_told_to_those_who_may_read_them() -> Result<()> {
    let daemon = listening_daemon().await?;
    let agent = TestDevice::pair(&daemon, "agent", policy(v1::DeviceRole::Agent)).await?;
    let reader = TestDevice::pair(&daemon, "reader", policy(v1::DeviceRole::Reader)).await?;
    let memory = writers::create(&daemon.channel, "It rains", v1::Visibility::Public).await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 3)?).await?;
    let last = writers::revision(&daemon.channel).await?;
    let title = |text: &str| v1::ChangeFilter {
        conversations: Some(v1::ConversationFilter {
            title_contains: text.to_owned(),
            ..v1::ConversationFilter::default()
        }),
        ..v1::ChangeFilter::default()
    };
    let without = v1::ChangeFilter { without_conversations: true, ..v1::ChangeFilter::default() };
    let only = v1::ChangeFilter { without_memories: true, ..v1::ChangeFilter::default() };
    let cases = [
        (&daemon.channel, v1::ChangeFilter::default(), 4),
        (&daemon.channel, title("conversation 1"), 2),
        (&daemon.channel, without, 1),
        (&daemon.channel, only, 3),
        (&reader.channel, v1::ChangeFilter::default(), 4),
        (&agent.channel, v1::ChangeFilter::default(), 1),
    ];
    for (channel, filter, expected) in cases {
        let mut follower = Follower::with_filter(filter.clone());
        follower.follow_until(channel, last).await?;
        let ids: BTreeSet<&String> = follower.told.iter().map(|told| &told.1).collect();
        ensure!(ids.len() == expected, "{filter:?}: {:?}", follower.told);
        ensure!(filter.without_memories || ids.contains(&memory));
    }
    daemon.stop().await?;
    Ok(())
}
