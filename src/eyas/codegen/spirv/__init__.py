"""The last step of a Vulkan dispatch: one kernel of the GPU code generator in, the words of a SPIR-V module out.

`lower_to_spirv` runs the steps in the order of these files: `legalize` (types and functions that the target has not),
`interface` (arguments become descriptor bindings and push constants), `conversion` (upstream's patterns), `decorate`
(what results must not depend on a driver for), `needs` (what a device must have) and `serialize`.
"""
