//! Searches by meaning: vectors that clients supply and exports contain, alone and together with words.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_embedder::EndpointConfig;
use satchel_proto::v1::{
    self, admin_service_client::AdminServiceClient, embedding_service_client::EmbeddingServiceClient,
    memory_service_client::MemoryServiceClient, search_meaning::Source,
    search_service_client::SearchServiceClient,
};
use satchel_server::config::Config;
use satchel_tests::{operation, samples::sample, test_daemon::TestDaemon};
use serde_json::{Value, json};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use super::{query, search};

const MODEL: &str = "small-embed";

async fn create(channel: &Channel, content: &str, tag: &str) -> Result<String> {
    let memory =
        v1::Memory { content: content.to_owned(), tags: vec![tag.to_owned()], ..v1::Memory::default() };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() };
    let created = MemoryServiceClient::new(channel.clone()).create_memory(request).await?.into_inner();
    Ok(created.memory.context("a memory")?.id)
}

/// The texts without a vector, by memory.
async fn missing(channel: &Channel) -> Result<BTreeMap<String, v1::MissingEmbedding>> {
    let mut client = EmbeddingServiceClient::new(channel.clone());
    let mut request =
        v1::ListMissingEmbeddingsRequest { model: MODEL.to_owned(), page_size: 2, ..Default::default() };
    let mut found = BTreeMap::new();
    loop {
        let page = client.list_missing_embeddings(request.clone()).await?.into_inner();
        found.extend(page.missing.into_iter().map(|missing| (missing.memory_id.clone(), missing)));
        if page.next_page_token.is_empty() {
            return Ok(found);
        }
        request.page_token = page.next_page_token;
    }
}

async fn put(
    channel: &Channel,
    embeddings: Vec<v1::MemoryEmbedding>,
) -> Result<v1::PutEmbeddingsResponse, Status> {
    let request = v1::PutEmbeddingsRequest { model: MODEL.to_owned(), embeddings, ..Default::default() };
    Ok(EmbeddingServiceClient::new(channel.clone()).put_embeddings(request).await?.into_inner())
}

/// Supplies the vectors of memories whose text has none.
async fn put_missing(channel: &Channel, vectors: &[(&str, [f32; 2])]) -> Result<()> {
    let missing = missing(channel).await?;
    let embeddings = vectors.iter().map(|(id, vector)| {
        let missing = missing.get(*id).with_context(|| format!("{id} has a vector"))?;
        let content_hash = missing.content_hash.clone();
        Ok(v1::MemoryEmbedding {
            memory_id: missing.memory_id.clone(),
            content_hash,
            vector: vector.to_vec(),
        })
    });
    let stored = put(channel, embeddings.collect::<Result<_>>()?).await?;
    ensure!(stored.stored_count == i64::try_from(vectors.len())?, "{stored:?}");
    Ok(())
}

fn near(text: &str, source: Source) -> v1::SearchRequest {
    let meaning = v1::SearchMeaning { model: String::new(), source: Some(source) };
    v1::SearchRequest { meaning: Some(meaning), explain: true, ..query(text) }
}

fn vector(values: &[f32]) -> Source {
    Source::Vector(v1::SearchVector { values: values.to_vec() })
}

async fn found(channel: &Channel, request: v1::SearchRequest) -> Result<Vec<String>> {
    let response = search(channel, request).await?;
    ensure!(response.next_page_token.is_empty(), "a search by meaning has one page");
    Ok(response.hits.into_iter().map(|hit| hit.id).collect())
}

#[tokio::test]
async fn memories_are_found_by_vectors_that_a_client_supplied_alone_and_with_words() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let channel = &daemon.channel;
    let hive = create(channel, "The hive stands behind the barn.", "garden").await?;
    let queen = create(channel, "A queen lays two thousand eggs a day.", "garden").await?;
    let tax = create(channel, "The tax return is due in May.", "money").await?;
    ensure!(missing(channel).await?.len() == 3);
    put_missing(channel, &[(&hive, [1.0, 0.0]), (&queen, [0.8, 0.6]), (&tax, [0.0, 1.0])]).await?;
    ensure!(missing(channel).await?.is_empty());
    let mut client = EmbeddingServiceClient::new(channel.clone());
    let models =
        client.list_embedding_models(v1::ListEmbeddingModelsRequest::default()).await?.into_inner().models;
    let [model] = models.as_slice() else { anyhow::bail!("{models:?}") };
    ensure!((model.name.as_str(), model.dimensions, model.vector_count) == (MODEL, 2, 3), "{model:?}");

    // By meaning alone, the nearest first.
    let all = search(channel, near("", vector(&[1.0, 0.1]))).await?;
    let ids: Vec<&str> = all.hits.iter().map(|hit| hit.id.as_str()).collect();
    ensure!(ids == [&hive, &queen, &tax], "{all:?}");
    let cosines: Vec<f32> = all.hits.iter().filter_map(|hit| hit.cosine).collect();
    ensure!(
        (cosines[0] - 0.995).abs() < 1e-3 && cosines.is_sorted_by(|left, right| left > right),
        "{cosines:?}"
    );
    ensure!(all.hits[0].explanation.contains(MODEL), "{:?}", all.hits[0].explanation);
    // Filters come before the cut, and so does what is excluded.
    let one = |text: &str| v1::SearchRequest { page_size: 1, ..near(text, vector(&[1.0, 0.1])) };
    ensure!(found(channel, one("tag:money")).await? == [tax.as_str()]);
    ensure!(found(channel, one("tag:garden -barn")).await? == [queen.as_str()]);
    ensure!(found(channel, one("in:messages")).await?.is_empty());
    // Similar to a memory: not the memory itself.
    ensure!(
        found(channel, near("", Source::MemoryId(hive.clone()))).await? == [queen.as_str(), tax.as_str()]
    );

    // With words: what is on both lists is first.
    let both = found(channel, near("tax", vector(&[0.0, 1.0]))).await?;
    ensure!(both == [tax.as_str(), queen.as_str(), hive.as_str()], "{both:?}");
    let words = near("barn", vector(&[0.0, 1.0]));
    let response = search(channel, words).await?;
    ensure!(response.hits[0].id == hive && !response.hits[0].relaxed, "{response:?}");
    ensure!(response.hits.len() == 3 && response.strict_total == 1 && response.total == 3, "{response:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_changed_text_drops_its_vector_and_an_export_has_those_that_count() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let channel = &daemon.channel;
    let hive = create(channel, "The hive stands behind the barn.", "garden").await?;
    let queen = create(channel, "A queen lays two thousand eggs a day.", "garden").await?;
    put_missing(channel, &[(&hive, [1.0, 0.0]), (&queen, [0.1, 0.7])]).await?;
    let late = missing_of(channel, &hive).await?;
    let update = v1::UpdateMemoryRequest {
        memory: Some(v1::Memory {
            id: hive.clone(),
            content: "The hive was sold.".to_owned(),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["content".to_owned()] }),
        ..Default::default()
    };
    MemoryServiceClient::new(channel.clone()).update_memory(update).await?;
    ensure!(found(channel, near("", vector(&[1.0, 0.0]))).await? == [queen.as_str()]);
    ensure!(missing(channel).await?.keys().eq([&hive]));
    // A vector of the old text comes too late.
    let answer = put(channel, vec![v1::MemoryEmbedding { vector: vec![1.0, 0.0], ..late }]).await?;
    ensure!(answer.stored_count == 0 && answer.outdated_memory_ids == [hive.clone()], "{answer:?}");

    let output = daemon.folder.path().join("bundle");
    let request =
        v1::CreateExportRequest { output: output.to_string_lossy().into_owned(), ..Default::default() };
    operation::export(channel, request).await?;
    let document: Value = serde_json::from_slice(&std::fs::read(output.join("embeddings.json"))?)?;
    let exported = document["embeddings"].as_array().context("a list")?;
    ensure!(exported.len() == 1 && exported[0]["memory_id"] == json!(queen), "{document}");
    ensure!(exported[0]["vector"] == json!([0.1, 0.7]) && exported[0]["model"] == json!(MODEL), "{document}");

    // Another data directory finds it by the vector of the bundle.
    let other = TestDaemon::start().await?;
    other.import(&output).await?;
    ensure!(found(&other.channel, near("", vector(&[1.0, 0.0]))).await? == [queen.as_str()]);
    other.stop().await?;
    daemon.stop().await?;
    Ok(())
}

/// A vector for the text that a memory has now.
async fn missing_of(channel: &Channel, id: &str) -> Result<v1::MemoryEmbedding> {
    let request = v1::GetMemoryRequest { id: id.to_owned(), ..Default::default() };
    let memory = MemoryServiceClient::new(channel.clone()).get_memory(request).await?.into_inner().memory;
    let content_hash = memory.context("a memory")?.content_hash;
    Ok(v1::MemoryEmbedding { memory_id: id.to_owned(), content_hash, vector: Vec::new() })
}

#[tokio::test]
async fn vectors_of_memu_are_found() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&sample("memu", "rows-in-one-dump")).await?;
    let models = EmbeddingServiceClient::new(daemon.channel.clone())
        .list_embedding_models(v1::ListEmbeddingModelsRequest::default())
        .await?
        .into_inner()
        .models;
    let model = models.first().context("a model")?;
    let mut query = vec![0.0; usize::try_from(model.dimensions)?];
    query[0] = 1.0;
    let hits = found(&daemon.channel, near("", vector(&query))).await?;
    ensure!(i64::try_from(hits.len())? == model.vector_count, "{hits:?} {models:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused_with_the_field() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let channel = &daemon.channel;
    let hive = create(channel, "The hive stands behind the barn.", "garden").await?;
    let refused = |request| async move {
        let status = search(channel, request).await.err().context("a refusal")?;
        let fields =
            status.get_details_bad_request().map(|details| details.field_violations).unwrap_or_default();
        let reason = status.get_details_error_info().context("a reason")?.reason;
        let field = fields.into_iter().next().map(|field| field.field).unwrap_or_default();
        anyhow::Ok((status.code(), reason, field))
    };
    let invalid = |field: &str| (Code::InvalidArgument, "FIELD_INVALID".to_owned(), field.to_owned());
    ensure!(refused(near("", vector(&[1.0]))).await? == invalid("meaning.model"));
    put_missing(channel, &[(&hive, [1.0, 0.0])]).await?;
    for numbers in [&[][..], &[1.0], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
        ensure!(refused(near("", vector(numbers))).await? == invalid("meaning.vector"), "{numbers:?}");
    }
    let absent = v1::SearchMeaning { model: "unknown".to_owned(), source: Some(vector(&[1.0, 0.0])) };
    ensure!(
        refused(v1::SearchRequest { meaning: Some(absent), ..query("") }).await? == invalid("meaning.model")
    );
    let nothing = v1::SearchMeaning::default();
    ensure!(refused(v1::SearchRequest { meaning: Some(nothing), ..query("") }).await? == invalid("meaning"));
    let paged = v1::SearchRequest { page_token: "x".to_owned(), ..near("", vector(&[1.0, 0.0])) };
    ensure!(refused(paged).await? == invalid("page_token"));
    let unknown = near("", Source::MemoryId("unknown".to_owned()));
    ensure!(refused(unknown).await?.0 == Code::NotFound);
    let unembedded = create(channel, "The tax return is due in May.", "money").await?;
    ensure!(refused(near("", Source::MemoryId(unembedded.clone()))).await? == invalid("meaning.memory_id"));
    let off = refused(near("tax", Source::Query(true))).await?;
    ensure!(off == (Code::FailedPrecondition, "EMBEDDINGS_OFF".to_owned(), String::new()), "{off:?}");

    let late = missing_of(channel, &unembedded).await?;
    for wrong in [&[][..], &[0.0, 0.0], &[f32::NAN]] {
        let embedding = v1::MemoryEmbedding { vector: wrong.to_vec(), ..late.clone() };
        let status = put(channel, vec![embedding]).await.err().context("a refusal")?;
        ensure!(status.code() == Code::InvalidArgument, "{status:?}");
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_call_takes_as_many_numbers_as_it_says() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let embeddings = |dimension: usize| {
        let one = |number: u128| v1::MemoryEmbedding {
            memory_id: uuid::Uuid::from_u128(number).to_string(),
            content_hash: format!("sha256:{}", "0".repeat(64)),
            vector: vec![0.5; dimension],
        };
        (0..1_000).map(one).collect::<Vec<_>>()
    };
    let answer = put(&daemon.channel, embeddings(1_000)).await?;
    ensure!(answer.outdated_memory_ids.len() == 1_000, "none of these memories exists");
    let status = put(&daemon.channel, embeddings(1_001)).await.err().context("a refusal")?;
    ensure!(status.code() == Code::InvalidArgument && status.message().contains("send fewer"), "{status:?}");
    daemon.stop().await?;
    Ok(())
}

/// A server that makes embeddings: of texts about bees, and of others. It keeps the texts that it gets.
struct EmbeddingServer {
    url: String,
    texts: Arc<Mutex<Vec<String>>>,
}

impl EmbeddingServer {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let texts = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&texts);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let answered = connection.map_err(Into::into).and_then(|stream| answer(stream, &kept));
                assert!(answered.is_ok(), "{answered:?}");
            }
        });
        Ok(Self { url, texts })
    }

    fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(mut stream: TcpStream, kept: &Mutex<Vec<String>>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    if length == 0 {
        // A connection that was opened and not used.
        return Ok(());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body)?;
    let inputs: Vec<String> = serde_json::from_value(request["input"].clone())?;
    let embedding = |text: &String| if text.contains("bee") { json!([1.0, 0.1]) } else { json!([0.1, 1.0]) };
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"index": index, "embedding": embedding(text)}))
        .collect();
    kept.lock().unwrap_or_else(PoisonError::into_inner).extend(inputs);
    let answer = json!({"data": data, "model": request["model"]}).to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    )?;
    Ok(())
}

/// Waits until no text is without a vector.
async fn embedded(channel: &Channel) -> Result<()> {
    let until = Instant::now() + Duration::from_mins(1);
    while !missing(channel).await?.is_empty() {
        ensure!(Instant::now() < until, "texts have no vectors: {:?}", missing(channel).await?);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_makes_the_vectors_and_no_text_is_sent_twice() -> Result<()> {
    let server = EmbeddingServer::start()?;
    let endpoint = EndpointConfig::new(&server.url, MODEL)?;
    let folder = tempfile::tempdir()?;
    let set = |config: &mut Config| {
        config.embeddings = Some(endpoint.clone());
        // As `satchel serve` does; commands that serve by themselves send nothing in the background.
        config.watching.active = true;
    };
    let daemon = TestDaemon::start_with(folder, set).await?;
    let hive = create(&daemon.channel, "Honey bees live behind the barn.", "garden").await?;
    let tax = create(&daemon.channel, "The tax return is due in May.", "money").await?;
    embedded(&daemon.channel).await?;
    // No word of the query is in a memory; the filter is not sent.
    let near = search(&daemon.channel, near("status:active insects like bee", Source::Query(true))).await?;
    ensure!(near.hits.first().is_some_and(|hit| hit.id == hive) && near.hits.len() == 2, "{near:?}");
    // A prompt gets what means the same, although it has none of the words.
    let about = v1::BuildContextRequest { query: "beeswax".to_owned(), ..v1::BuildContextRequest::default() };
    let mut client = SearchServiceClient::new(daemon.channel.clone());
    ensure!(client.build_context(about.clone()).await?.into_inner().items.is_empty());
    let meaning = v1::SearchMeaning { source: Some(Source::Query(true)), ..v1::SearchMeaning::default() };
    let about = v1::BuildContextRequest { meaning: Some(meaning), ..about };
    let context = client.build_context(about).await?.into_inner();
    let quoted: Vec<&str> = context.items.iter().map(|item| item.id.as_str()).collect();
    ensure!(quoted == [hive.as_str(), tax.as_str()] && context.text.contains("Honey bees"), "{context:?}");
    let mut sent = server.texts();
    sent.sort();
    ensure!(
        sent == [
            "Honey bees live behind the barn.",
            "The tax return is due in May.",
            "beeswax",
            "insects like bee"
        ],
        "{sent:?}"
    );

    let folder = daemon.stop().await?;
    let daemon = TestDaemon::start_with(folder, set).await?;
    let update = v1::UpdateMemoryRequest {
        memory: Some(v1::Memory {
            id: tax.clone(),
            content: "No more bees.".to_owned(),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["content".to_owned()] }),
        ..Default::default()
    };
    MemoryServiceClient::new(daemon.channel.clone()).update_memory(update).await?;
    embedded(&daemon.channel).await?;
    ensure!(server.texts()[4..] == ["No more bees."], "{:?}", server.texts());
    let status = AdminServiceClient::new(daemon.channel.clone()).get_status(v1::GetStatusRequest {}).await?;
    let status = status.into_inner().embeddings.context("a status")?;
    ensure!(status.running && !status.leaves_machine && status.embedded_count == 1, "{status:?}");
    daemon.stop().await?;
    Ok(())
}
