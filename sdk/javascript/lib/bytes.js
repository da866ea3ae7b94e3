// Text to bytes and back. QuickJS has neither TextDecoder nor TextEncoder; base64 is its fastest way between bytes and
// strings (200 to 350 MB/s, against 5 MB/s for a loop).

const NATIVE = typeof Uint8Array.fromBase64 === "function" && typeof Uint8Array.prototype.toBase64 === "function";
/** Arguments of one call of `String.fromCharCode`. */
const MAX_ARGUMENTS = 8192;
/** Bytes of a text that are decoded at once if the text is not ASCII. */
const PIECE = 1024;
/** Bytes of large texts that are converted at once, so that the base64 of the whole never exists. A multiple of 3. */
const STEP = 3 * 64 * 1024;

/** The bytes as a string with one character (U+0000 to U+00FF) for each byte. */
export function binaryString(bytes) {
  if (bytes.length <= STEP) return smallBinaryString(bytes);
  const parts = [];
  for (let at = 0; at < bytes.length; at += STEP) parts.push(smallBinaryString(bytes.subarray(at, at + STEP)));
  return parts.join("");
}

function smallBinaryString(bytes) {
  if (NATIVE) return atob(bytes.toBase64());
  const parts = [];
  for (let at = 0; at < bytes.length; at += MAX_ARGUMENTS) {
    parts.push(String.fromCharCode.apply(null, bytes.subarray(at, at + MAX_ARGUMENTS)));
  }
  return parts.join("");
}

/** The bytes of a string whose characters are all below U+0100; null if one is not. */
function bytesOfBinaryString(text) {
  if (NATIVE) {
    try {
      return Uint8Array.fromBase64(btoa(text));
    } catch (error) {
      if (error.name === "InvalidCharacterError" || error instanceof TypeError) return null;
      throw error;
    }
  }
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0xff) return null;
    bytes[at] = code;
  }
  return bytes;
}

/** Whether all bytes are below 0x80. Reads 32 bytes in each step, as a loop over bytes takes eight times as long. */
export function isAscii(bytes) {
  let at = 0;
  while (at < bytes.length && (bytes.byteOffset + at) % 4 !== 0) if (bytes[at++] > 0x7f) return false;
  if (at === bytes.length) return true;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, (bytes.length - at) >> 2);
  const blocks = words.length & ~7;
  let seen = 0;
  for (let i = 0; i < blocks; i += 8) {
    seen |= words[i] | words[i + 1] | words[i + 2] | words[i + 3]
      | words[i + 4] | words[i + 5] | words[i + 6] | words[i + 7];
  }
  if ((seen & 0x80808080) !== 0) return false;
  for (at += blocks * 4; at < bytes.length; at++) if (bytes[at] > 0x7f) return false;
  return true;
}

/** Decodes UTF-8: `{ text, valid }`. Invalid bytes become U+FFFD, and `valid` is false. */
export function decode(bytes) {
  if (isAscii(bytes)) return { text: binaryString(bytes), valid: true };
  const parts = [];
  let valid = true;
  // Only the pieces that are not ASCII take the slow way, and its long intermediate texts stay small.
  for (let at = 0; at < bytes.length; ) {
    const end = characterStart(bytes, Math.min(at + PIECE, bytes.length));
    const piece = bytes.subarray(at, end);
    const text = decodePiece(piece);
    valid &&= text !== null;
    parts.push(text ?? decodeReplacing(piece));
    at = end;
  }
  return { text: parts.join(""), valid };
}

/** The text of a few bytes; null if they are invalid. */
function decodePiece(bytes) {
  const binary = smallBinaryString(bytes);
  if (isAscii(bytes)) return binary;
  try {
    return decodeURIComponent(escape(binary));
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/** `at`, or the start of the character that it is inside of. */
function characterStart(bytes, at) {
  for (let start = at; start > at - 4 && start < bytes.length; start--) {
    if ((bytes[start] & 0xc0) !== 0x80) return start;
  }
  return at;
}

/** Encodes as UTF-8. Lone surrogates become U+FFFD. */
export function encode(text) {
  const bytes = bytesOfBinaryString(text);
  if (bytes !== null && isAscii(bytes)) return bytes;
  const whole = text.isWellFormed?.() === false ? text.toWellFormed() : text;
  return bytesOfBinaryString(unescape(encodeURIComponent(whole)));
}

/** Decodes with U+FFFD for each maximal part of an invalid sequence, like the decoders of Rust and of browsers. */
function decodeReplacing(bytes) {
  const parts = [];
  let plain = 0;
  for (let at = 0; at < bytes.length; ) {
    const [length, valid] = sequence(bytes, at);
    if (!valid) {
      if (at > plain) parts.push(decodeURIComponent(escape(binaryString(bytes.subarray(plain, at)))));
      parts.push("\ufffd");
      plain = at + length;
    }
    at += length;
  }
  if (bytes.length > plain) parts.push(decodeURIComponent(escape(binaryString(bytes.subarray(plain)))));
  return parts.join("");
}

/** The length of the sequence at `at`, or of its part that could begin a valid one, and whether it is valid. */
function sequence(bytes, at) {
  const lead = bytes[at];
  if (lead < 0x80) return [1, true];
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return [1, false];
  // The second byte excludes long forms, surrogates and values above U+10FFFF.
  const low = { 0xe0: 0xa0, 0xf0: 0x90 }[lead] ?? 0x80;
  const high = { 0xed: 0x9f, 0xf4: 0x8f }[lead] ?? 0xbf;
  for (let next = 1; next < length; next++) {
    const byte = bytes[at + next];
    const fits = next === 1 ? byte >= low && byte <= high : byte >= 0x80 && byte <= 0xbf;
    if (!fits) return [next, false];
  }
  return [length, true];
}
