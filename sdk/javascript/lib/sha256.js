// SHA-256 (FIPS 180-4). The sandbox has no crypto.

const ROUNDS = 64;
const K = new Int32Array(ROUNDS);
const START = new Int32Array(8);
setConstants();

/** The SHA-256 of the bytes as 64 lower-case hex digits. */
export function sha256(bytes) {
  const padded = new Uint8Array(((bytes.length + 8 >> 6) + 1) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x20000000));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const state = START.slice();
  const words = new Int32Array(ROUNDS);
  for (let at = 0; at < padded.length; at += 64) block(state, words, view, at);
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function block(state, words, view, at) {
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + i * 4);
  for (let i = 16; i < ROUNDS; i++) {
    const [x, y] = [words[i - 15], words[i - 2]];
    const low = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    const high = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
    words[i] = (words[i - 16] + low + words[i - 7] + high) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < ROUNDS; i++) {
    const sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + sum1 + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (sum0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] = (state[i] + word) | 0; });
}

function rotate(word, by) {
  return (word >>> by) | (word << (32 - by));
}

/** The fractional parts of the square roots and cube roots of the first primes. */
function setConstants() {
  const fraction = (root) => ((root - Math.floor(root)) * 0x100000000) | 0;
  for (let candidate = 2, count = 0; count < ROUNDS; candidate++) {
    let prime = true;
    for (let i = 2; i * i <= candidate; i++) if (candidate % i === 0) prime = false;
    if (!prime) continue;
    if (count < START.length) START[count] = fraction(Math.sqrt(candidate));
    K[count++] = fraction(Math.cbrt(candidate));
  }
}
