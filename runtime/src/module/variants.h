// variants.bin: what each variant of a fat module needs, best first, and the choice among them.
//
// A fat module holds the same model compiled for several targets. Each variant is a program of its
// own, with its executables and manifest, in the folder variants/NAME/; parameters.bin is shared.
#ifndef EYAS_MODULE_VARIANTS_H_
#define EYAS_MODULE_VARIANTS_H_

#include "module/container.h"

typedef struct eyas_requirement_t {  // of one executable
  const char* format;
  const char* const* features;
  uint32_t feature_count;
} eyas_requirement_t;

typedef struct eyas_variant_requirements_t {
  eyas_variant_t variant;
  const eyas_requirement_t* executables;
  uint32_t executable_count;
} eyas_variant_requirements_t;

typedef struct eyas_variants_t {
  const eyas_variant_requirements_t* items;
  uint32_t count;
  eyas_bump_t memory;
} eyas_variants_t;

// On failure `variants` is empty and owns nothing.
eyas_status_t eyas_variants_parse(const uint8_t* data, size_t length, eyas_variants_t* variants);
void eyas_variants_free(eyas_variants_t* variants);

// The variant called `wanted`: by its name, its target, or a part of it that no other has. Without
// that, the first that `device` can run; without a device, the first.
eyas_status_t eyas_variants_choose(const eyas_variants_t* variants, const char* wanted,
                                   eyas_hal_device_t* device, uint32_t* out_index);

#endif  // EYAS_MODULE_VARIANTS_H_
