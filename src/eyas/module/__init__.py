"""Program and container formats. A VM program, executables and weights go in; a `.eyas` file comes out, and back.

isa.py        the instruction table that everything else is made from; isa_table.py says what a row is
vmvx_isa.py   that of portable dispatches; vmvx_assembler.py, vmvx_registers.py and vmvx_executable.py write them
program.py    Program and its parts as frozen dataclasses; encode, decode
assembler.py  ProgramBuilder and Assembler: how the compiler writes functions; disassemble
pool.py       where weights lie in parameters.bin, equal ones once
variants.py   several programs in one file, one for each target
container.py  the `.eyas` zip: write, read, digests

Needs nothing but the standard library (pool.py takes NumPy arrays through the buffer protocol).
"""
