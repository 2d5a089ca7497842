// SHA-256 (FIPS 180-4): names executables and parameters by their content.
#ifndef EYAS_BASE_SHA256_H_
#define EYAS_BASE_SHA256_H_

#include <stddef.h>
#include <stdint.h>

typedef struct eyas_sha256_t {
  uint32_t state[8];
  uint64_t length;      // bytes so far
  uint8_t pending[64];  // the block not yet full
} eyas_sha256_t;

void eyas_sha256_begin(eyas_sha256_t* hash);
void eyas_sha256_update(eyas_sha256_t* hash, const void* data, size_t length);
void eyas_sha256_end(eyas_sha256_t* hash, uint8_t out_digest[32]);

// All three at once.
void eyas_sha256(const void* data, size_t length, uint8_t out_digest[32]);

// Lower-case hex with a terminating zero.
void eyas_sha256_hex(const uint8_t digest[32], char out_text[65]);

#endif  // EYAS_BASE_SHA256_H_
