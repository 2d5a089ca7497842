#include "vmvx/settings.h"

#include <string.h>

#include "eyas/vmvx.h"
#include "ukernel/products.h"

// Products have finer sets than elements: for "avx512-vnni" those of "avx512" serve.
static const eyas_uk_elements_t* find_elements(const char* name) {
  const eyas_uk_elements_t* found = eyas_uk_elements(name);
  const char* dash = name ? strchr(name, '-') : NULL;
  char plain[32];
  if (found || !dash || (size_t)(dash - name) >= sizeof(plain)) return found;
  memcpy(plain, name, (size_t)(dash - name));
  plain[dash - name] = 0;
  return eyas_uk_elements(plain);
}

static eyas_status_t no_such_kernels(const char* name) {
  const eyas_uk_products_t* sets[16];
  int count = eyas_uk_products_available(sets, 16);
  char known[256] = "";
  for (int i = 0; i < count; ++i) {
    strncat(known, i ? ", " : "", sizeof(known) - strlen(known) - 1);
    strncat(known, sets[i]->name, sizeof(known) - strlen(known) - 1);
  }
  return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                          "this CPU has no VMVX microkernels '%s'; it has: %s", name, known);
}

eyas_status_t eyas_vmvx_settings(const char* kernels, unsigned width,
                                 eyas_vmvx_settings_t* out_settings) {
  if (kernels && !kernels[0]) kernels = NULL;
  eyas_vmvx_settings_t settings = {
      .elements = find_elements(kernels), .products = eyas_uk_products(kernels), .width = width};
  if (!settings.elements || !settings.products) return no_such_kernels(kernels);
  if (width > 8 || (width & (width - 1))) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "the width of VMVX tiles is %u; allowed are 1, 2, 4 and 8", width);
  }
  if (width == 0) settings.width = settings.products->width;
  *out_settings = settings;
  return NULL;
}

eyas_status_t eyas_vmvx_info(const char* kernels, unsigned width, eyas_vmvx_info_t* out_info) {
  eyas_vmvx_settings_t settings;
  EYAS_RETURN_IF_ERROR(eyas_vmvx_settings(kernels, width, &settings));
  *out_info = (eyas_vmvx_info_t){.kernels = settings.products->name, .width = settings.width};
  return NULL;
}
