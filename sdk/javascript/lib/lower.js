// Converts a conversation from the names of PAM's JSON to the records of importer.wit, and checks the types on the way: the
// bindings abort the component without a text if a field has another type.

import { ImportError } from "./error.js";
import { stringify } from "./json.js";

const ROLES = ["user", "assistant", "system", "tool"];
const CONTENT_KINDS = ["text", "multipart"];
const PART_KINDS = ["text", "image", "code", "file", "audio", "video"];
const ATTACHMENT_KINDS = ["file", "image", "audio", "video", "document"];
const SOURCES = ["path", "bytes", "uri"];

/** The record `conversation`, without its messages. */
export function lowerConversation(record) {
  return {
    id: text(record, "id"),
    providerConversationId: optional(record, "provider_conversation_id"),
    account: optional(record, "account"),
    exportFormatVersion: optional(record, "export_format_version"),
    title: optional(record, "title"),
    createdAt: integer(record, "created_at"),
    updatedAt: integer(record, "updated_at"),
    participants: list(record, "participants", lowerParticipant),
    model: optional(record, "model"),
    systemInstruction: optional(record, "system_instruction"),
    isArchived: record.is_archived === true,
    tags: list(record, "tags", (tag) => text({ tag }, "tag")),
    current: optional(record, "current"),
    rawMetadata: object(record, "raw_metadata"),
    locator: text(record, "locator"),
  };
}

/** The record `message`. */
export function lowerMessage(record) {
  return {
    id: text(record, "id"),
    providerMessageId: optional(record, "provider_message_id"),
    role: choice(record, "role", ROLES),
    content: record.content == null ? null : lowerContent(record.content),
    createdAt: integer(record, "created_at"),
    parent: optional(record, "parent"),
    model: optional(record, "model"),
    isThought: record.is_thought === true,
    tokenCount: integer(record, "token_count"),
    attachments: list(record, "attachments", lowerAttachment),
    citations: list(record, "citations", lowerCitation),
    toolCalls: list(record, "tool_calls", lowerToolCall),
    rawMetadata: object(record, "raw_metadata"),
  };
}

function lowerParticipant(record) {
  return {
    role: choice(record, "role", ROLES),
    name: optional(record, "name"),
    providerId: optional(record, "provider_id"),
  };
}

function lowerContent(record) {
  return {
    kind: choice(record, "type", CONTENT_KINDS),
    text: optional(record, "text"),
    parts: list(record, "parts", lowerPart),
  };
}

function lowerPart(record) {
  return {
    kind: choice(record, "type", PART_KINDS),
    text: optional(record, "text"),
    language: optional(record, "language"),
    mimeType: optional(record, "mime_type"),
    ref: optional(record, "ref"),
  };
}

function lowerAttachment(record) {
  return {
    kind: choice(record, "type", ATTACHMENT_KINDS),
    name: optional(record, "name"),
    mimeType: optional(record, "mime_type"),
    sizeBytes: integer(record, "size_bytes"),
    ref: optional(record, "ref"),
    providerId: optional(record, "provider_id"),
    source: record.source == null ? null : lowerSource(record.source),
  };
}

/** `{ path: "…" }`, `{ uri: "…" }` or `{ bytes: Uint8Array }`. */
function lowerSource(record) {
  const [tag] = Object.keys(record);
  if (!SOURCES.includes(tag)) throw wrong("source", tag, `one of ${SOURCES.join(", ")}`);
  return { tag, val: tag === "bytes" ? Uint8Array.from(record.bytes) : text(record, tag) };
}

function lowerCitation(record) {
  return { title: optional(record, "title"), url: optional(record, "url"), snippet: optional(record, "snippet") };
}

function lowerToolCall(record) {
  return {
    id: optional(record, "id"),
    name: text(record, "name"),
    input: record.input == null ? null : lowerInput(record),
    output: optional(record, "output"),
  };
}

function lowerInput(record) {
  if (typeof record.input === "string") return { tag: "text", val: text(record, "input") };
  return { tag: "object", val: object(record, "input") };
}

function text(record, field) {
  const value = record[field];
  if (typeof value !== "string") throw wrong(field, value, "a string");
  return value.isWellFormed() ? value : value.toWellFormed();
}

function optional(record, field) {
  const value = record[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw wrong(field, value, "a string");
  return value.isWellFormed() ? value : value.toWellFormed();
}

function integer(record, field) {
  const value = record[field];
  if (value === undefined || value === null) return null;
  const number = Number(value);
  if (!Number.isInteger(number) || typeof value === "string") throw wrong(field, value, "an integer");
  return number;
}

function object(record, field) {
  const value = record[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== "object" || Array.isArray(value)) throw wrong(field, value, "an object");
  return stringify(value);
}

function choice(record, field, values) {
  const value = record[field];
  if (!values.includes(value)) throw wrong(field, value, `one of ${values.join(", ")}`);
  return value;
}

function list(record, field, lower) {
  const value = record[field];
  if (value === undefined) return NOTHING;
  if (!Array.isArray(value)) throw wrong(field, value, "an array");
  return value.map(lower);
}

const NOTHING = Object.freeze([]);

function wrong(field, value, wanted) {
  const given = value === undefined ? "absent" : `${JSON.stringify(value)}`.slice(0, 80);
  return ImportError.internal(`the field ${field} of an emitted record is ${given}; it must be ${wanted}`);
}
