// Solves the challenges that limit visitor tokens: finds a number so that the SHA-256 of `<challenge>.<number>` begins with
// so many zero bits. The browser's own SHA-256 waits for each call, which takes ten times as long as this one.

const AT_ONCE_MS = 25; // between two rounds the page can draw and be clicked
const ROUNDS = constants(64, 1 / 3);
const START = constants(8, 1 / 2);

/** Resolve to a solution, as text. `tell` is called now and then with the number of tries so far. */
export async function solve(challenge, bits, tell = () => {}) {
  const begin = new TextEncoder().encode(`${challenge}.`);
  for (let number = 0; ; ) {
    const until = performance.now() + AT_ONCE_MS;
    while (performance.now() < until) {
      for (let step = 0; step < 256; step++, number++) {
        if (countZeroBits(hash(append(begin, String(number)))) >= bits) return String(number);
      }
    }
    tell(number);
    await new Promise((go) => setTimeout(go));
  }
}

/** Return the eight 32-bit words of the SHA-256 of bytes. */
export function hash(bytes) {
  const blocks = Math.ceil((bytes.length + 9) / 64);
  const padded = new Uint8Array(64 * blocks);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, 8 * bytes.length);
  const state = Int32Array.from(START);
  for (let block = 0; block < blocks; block++) compress(state, view, 64 * block);
  return state;
}

const schedule = new Int32Array(64);

function compress(state, view, at) {
  for (let i = 0; i < 16; i++) schedule[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const early = schedule[i - 15];
    const late = schedule[i - 2];
    const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    schedule[i] = (schedule[i - 16] + first + schedule[i - 7] + second) | 0;
  }
  let a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (let i = 0; i < 64; i++) {
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + schedule[i]) | 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

function turn(word, by) {
  return (word >>> by) | (word << (32 - by));
}

function append(begin, digits) {
  const bytes = new Uint8Array(begin.length + digits.length);
  bytes.set(begin);
  for (let i = 0; i < digits.length; i++) bytes[begin.length + i] = digits.charCodeAt(i);
  return bytes;
}

function countZeroBits(words) {
  let zeros = 0;
  for (const word of words) {
    if (word) return zeros + Math.clz32(word);
    zeros += 32;
  }
  return zeros;
}

/** Return the first 32 bits of the fractional parts of the roots (`power`) of the first primes, as SHA-256 uses them. */
function constants(count, power) {
  const primes = [];
  for (let number = 2; primes.length < count; number++) {
    if (primes.every((prime) => number % prime)) primes.push(number);
  }
  return Int32Array.from(primes, (prime) => ((prime ** power % 1) * 2 ** 32) | 0);
}
