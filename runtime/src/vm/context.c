#include "vm/context.h"

#include <stdlib.h>

#include "base/checked.h"

static eyas_status_t no_memory(void) {
  return eyas_status_make(EYAS_STATUS_RESOURCE_EXHAUSTED, "no memory for a context");
}

static bool make_frame(eyas_context_t* c) {
  const eyas_program_t* p = &c->module->program;
  uint32_t i64s = 0, refs = 0, args = 0, results = 0, symbols = 0;
  for (uint32_t i = 0; i < p->function_count; ++i) {
    const eyas_function_t* f = &p->functions[i];
    if (f->i64_count > i64s) i64s = f->i64_count;
    if (f->ref_count > refs) refs = f->ref_count;
    if (f->signature.arg_count > args) args = f->signature.arg_count;
    if (f->signature.result_count > results) results = f->signature.result_count;
    if (f->signature.symbol_count > symbols) symbols = f->signature.symbol_count;
  }
  c->i64s = eyas_bump_allocate(&c->memory, i64s, sizeof(*c->i64s));
  c->refs = eyas_bump_allocate(&c->memory, refs, sizeof(*c->refs));
  c->args = eyas_bump_allocate(&c->memory, args, sizeof(*c->args));
  c->results = eyas_bump_allocate(&c->memory, results, sizeof(*c->results));
  c->symbols = eyas_bump_allocate(&c->memory, symbols, sizeof(*c->symbols));
  // A table has as many entries as its instruction names registers: a 16-bit count.
  c->table = eyas_bump_allocate(&c->memory, p->submit_limit, sizeof(*c->table));
  c->globals = eyas_bump_allocate(&c->memory, p->global_count, sizeof(*c->globals));
  c->parameters = eyas_bump_allocate(&c->memory, p->parameter_count, sizeof(*c->parameters));
  c->states = eyas_bump_allocate(&c->memory, p->state_count, sizeof(*c->states));
  c->states_torn = eyas_bump_allocate(&c->memory, p->state_count, sizeof(*c->states_torn));
  c->pack_memos = eyas_bump_allocate(&c->memory, p->pack_site_count, sizeof(*c->pack_memos));
  if (!c->i64s || !c->refs || !c->args || !c->results || !c->symbols || !c->table || !c->globals ||
      !c->parameters || !c->states || !c->states_torn || !c->pack_memos) {
    return false;
  }
  for (uint32_t i = 0; i < p->pack_site_count; ++i) {
    eyas_vm_pack_memo_t* memo = &c->pack_memos[i];
    uint32_t count = p->pack_sites[i].count;
    memo->sizes = eyas_bump_allocate(&c->memory, count, sizeof(*memo->sizes));
    memo->offsets = eyas_bump_allocate(&c->memory, count, sizeof(*memo->offsets));
    memo->scratch = eyas_bump_allocate(&c->memory, (size_t)count * 2, sizeof(*memo->scratch));
    if (!memo->sizes || !memo->offsets || !memo->scratch) return false;
  }
  return true;
}

static eyas_status_t build(eyas_context_t* c) {
  const eyas_program_t* p = &c->module->program;
  if (!make_frame(c)) return no_memory();
  for (uint32_t i = 0; i < p->parameter_count; ++i) {
    c->parameters[i] = (eyas_vm_buffer_t){.references = 1,
                                          .origin = EYAS_VM_ORIGIN_PARAMETER,
                                          .hal = c->loaded->parameters[i],
                                          .capacity = p->parameters[i].bytes};
  }
  return eyas_vm_create_states(c);
}

static void destroy(eyas_context_t* c) {
  const eyas_program_t* p = &c->module->program;
  for (uint32_t i = 0; c->globals && i < p->global_count; ++i) eyas_vm_ref_clear(c, &c->globals[i]);
  for (uint32_t i = 0; c->states && i < p->state_count; ++i)
    eyas_hal_buffer_release(c->states[i].hal);
  eyas_hal_command_buffer_release(c->reset);
  eyas_hal_semaphore_release(c->timeline);
  free(c->timed);
  eyas_vm_release_cached(c);
  eyas_hal_profile_clear(&c->profile);
  eyas_bump_free(&c->memory);
  pthread_mutex_destroy(&c->mutex);
  eyas_loaded_module_release(c->loaded);
  free(c);
}

eyas_status_t eyas_context_create(eyas_loaded_module_t* loaded,
                                  const eyas_context_options_t* options,
                                  eyas_context_t** out_context) {
  *out_context = NULL;
  eyas_context_t* context = calloc(1, sizeof(*context));
  if (!context) return no_memory();
  eyas_ref_initialize(&context->ref);
  pthread_mutex_init(&context->mutex, NULL);
  context->loaded = eyas_loaded_module_retain(loaded);
  context->module = loaded->module;
  context->device = loaded->device;
  if (options) context->options = *options;
  eyas_status_t status = build(context);
  if (status) {
    destroy(context);
    return status;
  }
  *out_context = context;
  return NULL;
}

eyas_context_t* eyas_context_retain(eyas_context_t* context) {
  if (context) eyas_ref_retain(&context->ref);
  return context;
}

void eyas_context_release(eyas_context_t* context) {
  if (context && eyas_ref_release(&context->ref)) destroy(context);
}

static eyas_status_t invoke(eyas_context_t* c, const eyas_function_t* f,
                            const eyas_tensor_t* args) {
  const eyas_signature_t* s = &f->signature;
  EYAS_RETURN_IF_ERROR(eyas_vm_import_args(c, args, s->arg_count));
  memcpy(c->i64s, f->initial, f->i64_count * sizeof(*c->i64s));
  EYAS_RETURN_IF_ERROR(eyas_vm_run(c, f, args));
  for (uint32_t i = 0; i < s->result_count; ++i) {
    if (!c->results[i].buffer) {
      return eyas_status_make(EYAS_STATUS_INTERNAL,
                              "the function ended without setting result %u '%s'", i,
                              s->results[i].name);
    }
  }
  return NULL;
}

eyas_status_t eyas_context_invoke(eyas_context_t* context, uint32_t function,
                                  const eyas_tensor_t* args, uint32_t arg_count,
                                  eyas_tensor_t* results, uint32_t result_count) {
  const eyas_program_t* program = &context->module->program;
  if (function >= program->function_count) {
    return eyas_status_make(EYAS_STATUS_NOT_FOUND, "function %u of %u", function,
                            program->function_count);
  }
  const eyas_function_t* f = &program->functions[function];
  const eyas_signature_t* s = &f->signature;
  if (result_count != s->result_count) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "'%s' gives %u results, room for %u was given", s->name,
                            s->result_count, result_count);
  }
  pthread_mutex_lock(&context->mutex);
  eyas_status_t status = eyas_vm_check_args(context->device, s, args, arg_count, context->symbols);
  if (!status && f->uses_state) status = eyas_vm_check_states(context);
  if (!status) {
    context->state_written = false;
    status = invoke(context, f, args);
    // What the device found comes before what the host made of it.
    status = eyas_status_join(eyas_vm_wait(context), status);
    if (status && context->state_written) eyas_vm_tear_states(context);
    for (uint32_t i = 0; i < f->ref_count; ++i) eyas_vm_ref_clear(context, &context->refs[i]);
    for (uint32_t i = 0; i < s->arg_count; ++i) {
      eyas_hal_buffer_release(context->args[i].hal);
      context->args[i].hal = NULL;
    }
    for (uint32_t i = 0; i < s->result_count; ++i) {
      if (status) {
        eyas_hal_buffer_release(context->results[i].buffer);
      } else {
        results[i] = context->results[i];
      }
      context->results[i] = (eyas_tensor_t){0};
    }
    status = eyas_status_annotate(status, "'%s'", s->name);
  }
  pthread_mutex_unlock(&context->mutex);
  return status;
}

uint64_t eyas_context_transient_bytes(eyas_context_t* context) {
  pthread_mutex_lock(&context->mutex);
  uint64_t bytes = context->transient_bytes;
  pthread_mutex_unlock(&context->mutex);
  return bytes;
}
