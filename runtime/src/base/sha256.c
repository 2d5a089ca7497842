#include "base/sha256.h"

#include <string.h>

#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint32_t round_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate_right(uint32_t value, int count) {
  return (value >> count) | (value << (32 - count));
}

static void compress_portable(uint32_t state[8], const uint8_t* block, size_t block_count) {
  for (; block_count > 0; --block_count, block += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
             (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 16; i < 64; ++i) {
      uint32_t s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; ++i) {
      uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
      uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
      uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
      uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if defined(__x86_64__)
// Intel's SHA extensions: two rounds an instruction. The state travels as ABEF and CDGH.
__attribute__((target("sha,sse4.1,ssse3"))) static void compress_sha_ni(uint32_t state[8],
                                                                        const uint8_t* block,
                                                                        size_t block_count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i*)&state[0]), 0xB1);
  __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i*)&state[4]), 0x1B);
  __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, dcba, 0xF0);
  for (; block_count > 0; --block_count, block += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i*)(block + 16 * i)), swap);
    }
    for (int i = 0; i < 16; ++i) {
      __m128i now = w[i & 3];
      __m128i sum = _mm_add_epi32(now, _mm_load_si128((const __m128i*)&round_constants[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      if (i < 12) {  // the four message words that are needed 16 rounds from here
        __m128i next = _mm_sha256msg1_epu32(now, w[(i + 1) & 3]);
        next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
        w[i & 3] = _mm_sha256msg2_epu32(next, w[(i + 3) & 3]);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128((__m128i*)&state[0], _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128((__m128i*)&state[4], _mm_alignr_epi8(dchg, feba, 8));
}

static int has_sha_ni(void) {
  static _Atomic int cached = -1;
  int known = cached;
  if (known < 0) {
    known = eyas_cpu_supports("sha") && eyas_cpu_supports("sse4.1") && eyas_cpu_supports("ssse3");
    cached = known;
  }
  return known;
}
#endif

static void compress(uint32_t state[8], const uint8_t* blocks, size_t block_count) {
#if defined(__x86_64__)
  if (has_sha_ni()) {
    compress_sha_ni(state, blocks, block_count);
    return;
  }
#endif
  compress_portable(state, blocks, block_count);
}

void eyas_sha256_begin(eyas_sha256_t* hash) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, initial, sizeof(initial));
  hash->length = 0;
}

void eyas_sha256_update(eyas_sha256_t* hash, const void* data, size_t length) {
  const uint8_t* bytes = data;
  if (length == 0) return;
  size_t used = (size_t)(hash->length % 64);
  hash->length += length;
  if (used > 0) {
    size_t take = 64 - used < length ? 64 - used : length;
    memcpy(hash->pending + used, bytes, take);
    bytes += take, length -= take;
    if (used + take < 64) return;
    compress(hash->state, hash->pending, 1);
  }
  compress(hash->state, bytes, length / 64);
  memcpy(hash->pending, bytes + length / 64 * 64, length % 64);
}

void eyas_sha256_end(eyas_sha256_t* hash, uint8_t out_digest[32]) {
  uint64_t bits = hash->length * 8;
  uint8_t padding[72] = {0x80};
  size_t zeros = (size_t)((119 - hash->length % 64) % 64);  // so that the length ends a block
  for (int i = 0; i < 8; ++i) padding[1 + zeros + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
  eyas_sha256_update(hash, padding, 1 + zeros + 8);
  for (int i = 0; i < 32; ++i) out_digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void eyas_sha256(const void* data, size_t length, uint8_t out_digest[32]) {
  eyas_sha256_t hash;
  eyas_sha256_begin(&hash);
  eyas_sha256_update(&hash, data, length);
  eyas_sha256_end(&hash, out_digest);
}

void eyas_sha256_hex(const uint8_t digest[32], char out_text[65]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 32; ++i) {
    out_text[2 * i] = digits[digest[i] >> 4];
    out_text[2 * i + 1] = digits[digest[i] & 15];
  }
  out_text[64] = 0;
}
