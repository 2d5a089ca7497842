// An instance's commands, as the recording has them: waves with barriers between.
#include "hal/vulkan/vulkan.h"

enum {
  WORK_STAGES = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
  WRITES = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
  READS = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT,
};

typedef struct writer_t {
  eyas_hal_vulkan_device_t* device;
  const eyas_hal_command_buffer_t* commands;
  const eyas_hal_vulkan_recording_t* recording;
  const eyas_hal_vulkan_instance_t* instance;
  VkCommandBuffer target;
  VkPipeline bound;
  bool reported;     // a dispatch before may have set the error word since it was last looked at
  bool conditional;  // what comes is skipped when it is set
} writer_t;

static void barrier(writer_t* writer, VkFlags source, VkFlags target, VkFlags source_access,
                    VkFlags target_access) {
  const VkMemoryBarrier memory = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = source_access,
      .dstAccessMask = target_access,
  };
  writer->device->vk.CmdPipelineBarrier(writer->target, source, target, 0, 1, &memory, 0, NULL, 0,
                                        NULL);
}

static void end_condition(writer_t* writer) {
  if (writer->conditional) writer->device->vk.CmdEndConditionalRenderingEXT(writer->target);
  writer->conditional = false;
}

// Between two waves. Where a dispatch may have failed, dispatches after it depend on the error word
// on devices that can do this; elsewhere they run, and what they compute is nobody's.
static void next_wave(writer_t* writer) {
  VkFlags stages = WORK_STAGES, access = READS | WRITES;
  const bool look = writer->reported && writer->device->facts.conditional;
  if (look) {
    stages |= VK_PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT;
    access |= VK_ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT;
    end_condition(writer);
  }
  barrier(writer, WORK_STAGES, stages, WRITES, access);
  writer->reported = false;
  if (!look) return;
  const VkConditionalRenderingBeginInfoEXT condition = {
      .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT,
      .buffer = writer->instance->words->block->buffer,
      .offset = writer->instance->words->offset,
      .flags = VK_CONDITIONAL_RENDERING_INVERTED_BIT_EXT,
  };
  writer->device->vk.CmdBeginConditionalRenderingEXT(writer->target, &condition);
  writer->conditional = true;
}

static void write_dispatch(writer_t* writer, size_t index) {
  const eyas_vk_device_functions_t* vk = &writer->device->vk;
  const eyas_hal_command_t* command = &eyas_hal_commands(writer->commands)[index];
  const eyas_hal_vulkan_step_t* step = &writer->recording->steps[index];
  const eyas_hal_vulkan_export_t* export = step->export;
  if (writer->bound != export->pipeline) {
    vk->CmdBindPipeline(writer->target, VK_PIPELINE_BIND_POINT_COMPUTE, export->pipeline);
    writer->bound = export->pipeline;
  }
  if (export->descriptor_count) {
    vk->CmdBindDescriptorSets(writer->target, VK_PIPELINE_BIND_POINT_COMPUTE, export->layout, 0, 1,
                              &writer->instance->sets[step->set], 0, NULL);
  }
  if (!export->words_in_buffer && export->word_count) {
    uint32_t words[EYAS_HAL_VULKAN_MAX_WORDS];
    const uint32_t count = eyas_hal_vulkan_dispatch_words(writer->device, writer->commands, index,
                                                          writer->instance, words);
    vk->CmdPushConstants(writer->target, export->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 * count,
                         words);
  }
  const uint32_t* grid = command->workgroup_count;
  vk->CmdDispatch(writer->target, grid[0], grid[1], grid[2]);
  writer->reported |= export->reports;
}

static void write_timestamp(writer_t* writer, uint32_t index) {
  if (!writer->instance->queries) return;
  // Commands are timed one by one, so that each has its own time.
  if (index > 0) barrier(writer, WORK_STAGES, WORK_STAGES, WRITES, READS | WRITES);
  writer->device->vk.CmdWriteTimestamp(writer->target, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                       writer->instance->queries, index);
}

static void write_commands(writer_t* writer) {
  uint32_t wave = 0;
  const size_t count = writer->commands->commands.count;
  if (writer->instance->queries) {
    writer->device->vk.CmdResetQueryPool(writer->target, writer->instance->queries, 0,
                                         (uint32_t)count + 1);
  }
  // Submissions run one after the other: what others wrote before is there.
  barrier(writer, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, WORK_STAGES, VK_ACCESS_MEMORY_WRITE_BIT,
          READS | WRITES);
  write_timestamp(writer, 0);
  for (size_t i = 0; i < count; ++i) {
    const eyas_hal_command_t* command = &eyas_hal_commands(writer->commands)[i];
    if (command->wave != wave) next_wave(writer);
    wave = command->wave;
    if (command->kind != EYAS_HAL_COMMAND_DISPATCH) {
      eyas_hal_vulkan_record_transfer(writer->device, writer->commands, i, writer->instance);
    } else if (writer->recording->steps[i].export) {
      write_dispatch(writer, i);
    }
    write_timestamp(writer, (uint32_t)i + 1);
  }
  end_condition(writer);
  barrier(writer, WORK_STAGES, VK_PIPELINE_STAGE_HOST_BIT, WRITES, VK_ACCESS_HOST_READ_BIT);
}

eyas_status_t eyas_hal_vulkan_instance_record(eyas_hal_vulkan_device_t* device,
                                              const eyas_hal_command_buffer_t* commands,
                                              eyas_hal_vulkan_instance_t* instance) {
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->vk.ResetCommandPool(device->handle, instance->pool->pool, 0), "vkResetCommandPool"));
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  EYAS_RETURN_IF_ERROR(eyas_hal_vulkan_status(
      device->vk.BeginCommandBuffer(instance->pool->commands, &info), "vkBeginCommandBuffer"));
  writer_t writer = {
      .device = device,
      .commands = commands,
      .recording = commands->payload,
      .instance = instance,
      .target = instance->pool->commands,
  };
  write_commands(&writer);
  return eyas_hal_vulkan_status(device->vk.EndCommandBuffer(instance->pool->commands),
                                "vkEndCommandBuffer");
}
