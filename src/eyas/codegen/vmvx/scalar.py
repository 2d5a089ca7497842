def lower_to_scalars(function, asm):
    raise NotImplementedError
